package tests

import (
	"bytes"
	"flag"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var updateAPI = flag.Bool("api.update", false, "write api/vkomp.txt anew")

// publicPackages are the packages that programs may import. The exports of other packages are
// for this repository only.
var publicPackages = []string{".", "interop", "interop/vgpu", "ompt", "ompt/trace", "shaders"}

// The public API must not change by accident: api/vkomp.txt has to change with it. It names no types
// of packages that promise nothing to programs, whose documentation a program's author would have to
// read.
func TestExportedNamesAreThoseOfTheList(t *testing.T) {
	var lines []string
	for _, room := range publicPackages {
		lines = append(lines, exportedNames(t, room)...)
	}
	got := strings.Join(lines, "\n") + "\n"
	list := filepath.Join("..", "api", "vkomp.txt")
	if *updateAPI {
		if err := os.WriteFile(list, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("exported names (-api/vkomp.txt +found); if they are meant, go test ./tests -run ExportedNames -api.update:\n%s", diff)
	}
}

// innerTypes are the types of other packages that the public API may name: handles of Vulkan, and
// what an interop object is a handle of. A program sees no further into these.
var innerTypes = []string{"vk.Semaphore", "vk.Buffer", "foreign.Object"}

// exportedNames returns a sorted line for each name that the package in a folder exports, with
// its type: constants, variables, functions, types, and the fields and methods of types.
func exportedNames(t *testing.T, folder string) []string {
	t.Helper()
	fset := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join("..", folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	l := &listing{prefix: "pkg " + strings.TrimSuffix("vkomp/"+folder, "/.") + ", ", fset: fset, t: t}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		l.imports = importsOf(file)
		for _, d := range file.Decls {
			l.declaration(d)
		}
	}
	if len(l.lines) == 0 {
		t.Errorf("%s exports nothing", folder)
	}
	slices.Sort(l.lines)
	// Files for different systems declare the same names.
	return slices.Compact(l.lines)
}

// listing collects the lines of a package.
type listing struct {
	t      *testing.T
	prefix string
	fset   *token.FileSet
	// imports maps the names of packages to their import paths in the file that is being read.
	imports map[string]string
	lines   []string
}

// importsOf returns the import paths of a file by the names that they have there.
func importsOf(f *ast.File) map[string]string {
	imports := map[string]string{}
	for _, i := range f.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		name := path[strings.LastIndexByte(path, '/')+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		imports[name] = path
	}
	return imports
}

// elsewhere adds what a program sees by name of a type of another package of the module,
// which name is an alias of, or has as its underlying type, or embeds: its fields and those
// methods that name has too.
func (l *listing) elsewhere(name string, typ ast.Expr, methods bool) {
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	selector, ok := typ.(*ast.SelectorExpr)
	if !ok {
		return
	}
	folder, ours := strings.CutPrefix(l.imports[l.source(selector.X)], module+"/")
	if !ours {
		return
	}
	names, err := filepath.Glob(filepath.Join("..", folder, "*.go"))
	if err != nil {
		l.t.Fatal(err)
	}
	found := false
	for _, path := range names {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(l.fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			l.t.Fatal(err)
		}
		there := &listing{t: l.t, prefix: l.prefix, fset: l.fset, imports: importsOf(file)}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if !methods || d.Recv == nil || !d.Name.IsExported() {
					continue
				}
				if receiver := there.source(d.Recv.List[0].Type); strings.TrimPrefix(receiver, "*") == selector.Sel.Name {
					there.add("method (" + strings.Replace(receiver, selector.Sel.Name, name, 1) + ") " + d.Name.Name + there.signature(d.Type))
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok && s.Name.Name == selector.Sel.Name {
						found = true
						there.members(name, s)
					}
				}
			}
		}
		l.lines = append(l.lines, there.lines...)
	}
	if !found {
		l.t.Errorf("%s: no type %s in %s", name, selector.Sel.Name, folder)
	}
}

func (l *listing) add(words ...string) {
	l.lines = append(l.lines, l.prefix+strings.TrimSpace(strings.Join(words, " ")))
}

// source returns the source text of a node, in one line.
func (l *listing) source(n ast.Node) string {
	if n == nil {
		return ""
	}
	var b bytes.Buffer
	if err := printer.Fprint(&b, l.fset, n); err != nil {
		panic(err) // a bytes.Buffer cannot fail
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func (l *listing) declaration(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if !d.Name.IsExported() {
			return
		}
		if d.Recv == nil {
			l.add("func", d.Name.Name+l.signature(d.Type))
			return
		}
		receiver := l.source(d.Recv.List[0].Type)
		if base, _, _ := strings.Cut(strings.TrimPrefix(receiver, "*"), "["); ast.IsExported(base) {
			l.add("method (" + receiver + ") " + d.Name.Name + l.signature(d.Type))
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					l.typeSpec(s)
				}
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if name.IsExported() {
						l.add(d.Tok.String(), name.Name, l.typeOf(s))
					}
				}
			}
		}
	}
}

// typeOf returns the type of constants or variables as it is written, if it is.
func (l *listing) typeOf(s *ast.ValueSpec) string {
	if s.Type == nil {
		return ""
	}
	return l.typ(s.Type)
}

// typ returns the source text of a type that the API names. The types of packages that promise
// nothing to programs are an error.
func (l *listing) typ(e ast.Expr) string {
	if e == nil {
		return ""
	}
	ast.Inspect(e, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		folder, ours := strings.CutPrefix(l.imports[l.source(s.X)], module)
		folder = strings.TrimPrefix(folder, "/")
		if name := l.source(s); ours && folder != "" && !slices.Contains(publicPackages, folder) && !slices.Contains(innerTypes, name) {
			l.t.Errorf("%sthe API names %s, a type of a package that promises nothing to programs", l.prefix, name)
		}
		return false
	})
	return l.source(e)
}

// signature returns the types of a function's parameters and results. Names of parameters are
// not part of the API.
func (l *listing) signature(f *ast.FuncType) string {
	s := l.list(f.TypeParams, "[", "]", true) + l.list(f.Params, "(", ")", false)
	switch results := l.list(f.Results, "(", ")", false); {
	case results == "()":
		return s
	case len(f.Results.List) == 1 && len(f.Results.List[0].Names) <= 1:
		return s + " " + results[1:len(results)-1]
	default:
		return s + " " + results
	}
}

func (l *listing) list(fields *ast.FieldList, open, end string, named bool) string {
	if fields == nil {
		if named {
			return ""
		}
		return open + end
	}
	var all []string
	for _, f := range fields.List {
		typ := l.typ(f.Type)
		for range max(1, len(f.Names)) {
			all = append(all, typ)
		}
		for i, name := range f.Names {
			if named {
				all[len(all)-len(f.Names)+i] = name.Name + " " + typ
			}
		}
	}
	return open + strings.Join(all, ", ") + end
}

func (l *listing) typeSpec(s *ast.TypeSpec) {
	name := s.Name.Name + l.list(s.TypeParams, "[", "]", true)
	if s.Assign.IsValid() {
		l.add("type", name, "=", l.typ(s.Type))
		l.elsewhere(name, s.Type, true)
		return
	}
	l.members(name, s)
}

// members adds what a type consists of, under a name.
func (l *listing) members(name string, s *ast.TypeSpec) {
	switch typ := s.Type.(type) {
	case *ast.StructType:
		l.add("type", name, "struct")
		for _, f := range typ.Fields.List {
			if len(f.Names) == 0 {
				if text := l.typ(f.Type); ast.IsExported(text[strings.LastIndexAny(text, ".*")+1:]) {
					l.add("type", name, "struct, embedded", text)
					l.elsewhere(name, f.Type, true)
				}
			}
			for _, field := range f.Names {
				if field.IsExported() {
					l.add("type", name, "struct,", field.Name, l.typ(f.Type))
				}
			}
		}
	case *ast.InterfaceType:
		l.add("type", name, "interface")
		for _, m := range typ.Methods.List {
			if f, ok := m.Type.(*ast.FuncType); ok && m.Names[0].IsExported() {
				l.add("type", name, "interface,", m.Names[0].Name+l.signature(f))
			} else if !ok {
				l.add("type", name, "interface, embedded", l.typ(m.Type))
			}
		}
	default:
		l.add("type", name, l.typ(s.Type))
		l.elsewhere(name, s.Type, false)
	}
}
