package vkomp_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/vkomp/vkomp/tests/vktest"
)

// elements holds the types of parameters that may be hidden from escape analysis, with the number
// of pointers to follow from there to what may be kept: the elements of a slice may be copied,
// the slice itself may not be kept.
var elements = map[string]int{"[]Arg": 1, "[]Depend": 1, "*Arg": 1, "*Depend": 1, "*Rect": 2}

var leak = regexp.MustCompile(`(?m)^\./(\w+\.go:\d+:\d+): parameter (\w+) leaks to \{heap\} for (.+) with derefs=(\d+):$`)

// Inside a construct, the compiler's escape analysis does apply to the parameters that hide
// conceals at the call: it reports which parts of each parameter get to the heap.
func TestWhatIsHiddenFromEscapeAnalysisIsNotKept(t *testing.T) {
	vktest.Once(t)
	vktest.Long(t)
	files := token.NewFileSet()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	parameters := make(map[string]string) // position → type
	hidden := make(map[string]bool)       // types
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			for _, list := range []*ast.FieldList{f.Recv, f.Type.Params} {
				if list == nil {
					continue
				}
				for _, field := range list.List {
					for _, name := range field.Names {
						parameters[files.Position(name.Pos()).String()] = typeName(field.Type)
					}
				}
			}
			for _, breach := range takesApart(files, f, hidden) {
				t.Error(breach)
			}
		}
	}
	for _, want := range []string{"Target", "TargetEnterData", "TargetExitData", "TargetUpdate", "Rect"} {
		if !hidden[want] {
			t.Errorf("no construct hides its %s", want)
		}
	}

	build := exec.CommandContext(t.Context(), vktest.GoTool(t), "build", "-gcflags=-m=2", "-o", os.DevNull, ".")
	var out bytes.Buffer
	build.Stdout, build.Stderr = &out, &out
	if err := build.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out.Bytes())
	}
	looked := make(map[string]bool)
	for _, m := range leak.FindAllStringSubmatch(out.String(), -1) {
		at, parameter, function := m[1], m[2], m[3]
		derefs, err := strconv.Atoi(m[4])
		if err != nil {
			t.Fatal(err)
		}
		least, ok := elements[parameters[at]]
		if !ok {
			continue
		}
		looked[function+" "+parameter] = true
		if derefs < least {
			t.Errorf("%s: %s keeps a pointer into its %s, of type %s, which may lie on a stack: go build -gcflags=-m=2 says where", at, function, parameter, parameters[at])
		}
	}
	for _, want := range []string{"(*Runtime).target args", "(*Runtime).targetOnHost args", "(*clauses).arguments args", "(*clauses).motion a", "appendItems items"} {
		if !looked[want] {
			t.Errorf("the compiler does not say of %s what gets to the heap, as it did", want)
		}
	}
}

// typeName returns a type as spelled in elements, "" if it is not listed.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return "*" + typeName(e.X)
	case *ast.ArrayType:
		return "[]" + typeName(e.Elt)
	}
	return ""
}

// takesApart reports where a function that hides a directive passes it on together with slices,
// because the compiler's report on a structure does not distinguish its fields. It adds the types
// that the function hides.
func takesApart(files *token.FileSet, f *ast.FuncDecl, hidden map[string]bool) (breaches []string) {
	if f.Body == nil {
		return nil
	}
	types := make(map[string]string) // of what f hides, by variable
	for _, p := range f.Type.Params.List {
		for _, name := range p.Names {
			types[name.Name] = typeName(p.Type)
		}
	}
	handles := make(map[string]bool) // variables that are a hidden directive
	cleared := make(map[string]bool)
	passed := func(n ast.Node, what string) {
		breaches = append(breaches, fmt.Sprintf("%s: %s passes %s on whole", files.Position(n.Pos()), f.Name.Name, what))
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for k, right := range n.Rhs {
				left, _ := n.Lhs[min(k, len(n.Lhs)-1)].(*ast.Ident)
				if of := hides(right); of != "" && left != nil {
					handles[left.Name] = true
					hidden[types[of]] = true
				}
				if s, ok := n.Lhs[min(k, len(n.Lhs)-1)].(*ast.SelectorExpr); ok && typeName(right) == "nil" {
					cleared[typeName(s.X)+"."+s.Sel.Name] = true
				}
			}
		case *ast.CallExpr:
			for _, a := range n.Args {
				if of := hides(a); of != "" {
					hidden[types[of]] = true
					if types[of] != "Rect" { // has only slices and a number
						passed(a, of)
					}
				}
				if v := typeName(a); handles[v] && !(cleared[v+".Args"] && cleared[v+".Depend"]) {
					passed(a, v)
				}
			}
		}
		return true
	})
	return breaches
}

// hides returns the variable that an expression hides, "" if it is not a call of hide.
func hides(e ast.Expr) string {
	call, ok := e.(*ast.CallExpr)
	if !ok || typeName(call.Fun) != "hide" || len(call.Args) != 1 {
		return ""
	}
	if address, ok := call.Args[0].(*ast.UnaryExpr); ok {
		return typeName(address.X)
	}
	return ""
}
