package tests

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vkomp/vkomp/tests/vktest"
)

// pages returns the text of the repository's Markdown files, by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	root := os.DirFS("..")
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "bin" || name != "." && strings.HasPrefix(entry.Name(), ".")):
			return fs.SkipDir
		case path.Ext(name) != ".md":
			return nil
		}
		text, err := fs.ReadFile(root, name)
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"README.md", "docs/architecture.md"} {
		if all[name] == "" {
			t.Fatalf("%s is missing or empty", name)
		}
	}
	return all
}

var markdownLink = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)\s]*)?\)`)

func TestLinksLeadToFiles(t *testing.T) {
	links := 0
	for name, text := range pages(t) {
		for _, m := range markdownLink.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			if _, err := os.Stat(filepath.Join("..", path.Dir(name), m[1])); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", name, m[1])
			}
		}
	}
	if links == 0 {
		t.Error("no page has a link")
	}
}

// api returns the names in api/vkomp.txt by package, such as "Target" for a type and
// "Target.Kernel" for its field or method.
func api(t *testing.T) map[string]map[string]bool {
	t.Helper()
	list, err := os.ReadFile("../api/vkomp.txt")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]map[string]bool{}
	for line := range strings.Lines(string(list)) {
		pkg, rest, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "pkg "), ", ")
		pkg = path.Base(pkg)
		if names[pkg] == nil {
			names[pkg] = map[string]bool{}
		}
		kind, rest, _ := strings.Cut(rest, " ")
		name := strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune(" ([", r) })
		switch kind {
		case "method":
			receiver, method, _ := strings.Cut(strings.TrimLeft(rest, "(*"), ") ")
			method, _, _ = strings.Cut(method, "(")
			names[pkg][receiver+"."+method] = true
		case "type":
			names[pkg][name[0]] = true
			if _, field, ok := strings.Cut(rest, ", "); ok {
				field, _, _ = strings.Cut(field, " ")
				field, _, _ = strings.Cut(field, "(")
				names[pkg][name[0]+"."+field] = true
			}
		default:
			names[pkg][name[0]] = true
		}
	}
	return names
}

// receivers holds the types of variables in code blocks.
var receivers = map[string][2]string{"rt": {"vkomp", "Runtime"}, "device": {"vkomp", "Device"}, "o": {"interop", "Object"}, "object": {"interop", "Object"}, "collector": {"trace", "Collector"}, "traced": {"trace", "Trace"}}

// Code in the documentation is formatted by gofmt, and the API names in it exist.
func TestCodeInTheDocumentationIsOfTheAPI(t *testing.T) {
	known := api(t)
	blocks := 0
	for name, text := range pages(t) {
		for i, block := range strings.Split(text, "```go\n")[1:] {
			source, _, closed := strings.Cut(block, "```")
			where := fmt.Sprintf("%s, Go block %d", name, i+1)
			if !closed {
				t.Errorf("%s has no end", where)
				continue
			}
			blocks++
			if formatted, err := format.Source([]byte(source)); err != nil || string(formatted) != source {
				t.Errorf("%s is not as gofmt leaves it: %v", where, err)
				continue
			}
			if !strings.HasPrefix(source, "package ") {
				source = "package p\nfunc _() {\n" + source + "\n}\n"
			}
			file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
			if err != nil {
				t.Errorf("%s: %v", where, err)
				continue
			}
			for _, missing := range missingNames(file, known) {
				t.Errorf("%s: there is no %s", where, missing)
			}
		}
	}
	if blocks < 5 {
		t.Errorf("%d Go blocks in all pages", blocks)
	}
}

// missingNames returns the names in a file that belong to a known package but are not exported
// by it.
func missingNames(file *ast.File, known map[string]map[string]bool) []string {
	var missing []string
	need := func(pkg, name string) {
		if names := known[pkg]; names != nil && !names[name] {
			missing = append(missing, pkg+"."+name)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				if of, ok := receivers[x.Name]; ok {
					need(of[0], of[1]+"."+n.Sel.Name)
				} else {
					need(x.Name, n.Sel.Name)
				}
			}
		case *ast.CompositeLit:
			typ, ok := n.Type.(*ast.SelectorExpr)
			if !ok {
				break
			}
			pkg, ok := typ.X.(*ast.Ident)
			if !ok {
				break
			}
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					if field, ok := kv.Key.(*ast.Ident); ok {
						need(pkg.Name, typ.Sel.Name+"."+field.Name)
					}
				}
			}
		}
		return true
	})
	return missing
}

var quotedName = regexp.MustCompile("`((?:[a-z]+\\.)?[A-Z][A-Za-z]*(?:\\.[A-Z][A-Za-z]*)?)`")

// In tables whose first column is headed "names", that column holds exported names.
func TestNamesInTablesAreOfTheAPI(t *testing.T) {
	known := api(t)
	fields := map[string]bool{}
	for name := range known["vkomp"] {
		_, field, _ := strings.Cut(name, ".")
		fields[field] = true
	}
	names := 0
	for page, text := range pages(t) {
		inTable := false
		for line := range strings.Lines(text) {
			inTable = strings.HasPrefix(line, "| names |") || inTable && strings.HasPrefix(line, "|")
			if !inTable {
				continue
			}
			first := strings.Split(line, "|")[1]
			for _, m := range quotedName.FindAllStringSubmatch(first, -1) {
				names++
				name := m[1]
				// A method or a field may stand without its type.
				ok := known["vkomp"][name] || fields[name] || slices.ContainsFunc([]string{"trace", "ompt", "interop"}, func(pkg string) bool { return known[pkg][strings.TrimPrefix(name, pkg+".")] })
				if !ok {
					t.Errorf("%s: there is no %s", page, name)
				}
			}
		}
	}
	if names < 20 {
		t.Errorf("%d names in the tables", names)
	}
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

// A Go identifier in the glossary, with the name of its package, is declared there.
func TestNamesInTheGlossaryAreDeclared(t *testing.T) {
	vktest.Once(t)
	declared := declarations(t)
	names := 0
	for _, m := range codeSpan.FindAllStringSubmatch(pages(t)["docs/glossary.md"], -1) {
		pkg, name, ok := strings.Cut(m[1], ".")
		names++
		if !ok || !declared[pkg][name] {
			t.Errorf("the glossary names %s, which no package declares", m[1])
		}
	}
	if names < 60 {
		t.Errorf("%d names in the glossary", names)
	}
}

// declarations returns the names at the top level of every package of the module by the name
// of the package, exported or not, with those of fields and methods as in "Target.Kernel".
func declarations(t *testing.T) map[string]map[string]bool {
	t.Helper()
	declared := map[string]map[string]bool{}
	for _, f := range moduleFiles(t) {
		if f.c {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", f.path), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		names := declared[file.Name.Name]
		if names == nil {
			names = map[string]bool{}
			declared[file.Name.Name] = names
		}
		for _, declaration := range file.Decls {
			switch n := declaration.(type) {
			case *ast.FuncDecl:
				name := n.Name.Name
				if n.Recv != nil {
					name = receiverName(n.Recv.List[0].Type) + "." + name
				}
				names[name] = true
			case *ast.GenDecl:
				for _, s := range n.Specs {
					declareSpec(names, s)
				}
			}
		}
	}
	return declared
}

// declareSpec adds the names that a declaration declares.
func declareSpec(names map[string]bool, s ast.Spec) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			names[name.Name] = true
		}
	case *ast.TypeSpec:
		names[s.Name.Name] = true
		fields := &ast.FieldList{}
		switch typ := s.Type.(type) {
		case *ast.StructType:
			fields = typ.Fields
		case *ast.InterfaceType:
			fields = typ.Methods
		}
		for _, f := range fields.List {
			for _, name := range f.Names {
				names[s.Name.Name+"."+name.Name] = true
			}
		}
	}
}
