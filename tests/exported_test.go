package tests

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Everything that a package exports is documented: types, functions, methods, constants and
// variables, each enumerator for itself, and the fields of structs and methods of interfaces,
// for which a comment above the first of several lines is enough.
func TestExportedNamesAreDocumented(t *testing.T) {
	folders := map[string][]string{}
	for _, f := range moduleFiles(t) {
		if !f.c && !f.test && roomOf(parent(f.path)) != "cmd" {
			folders[parent(f.path)] = append(folders[parent(f.path)], f.path)
		}
	}
	if len(folders) < 15 {
		t.Fatalf("only %d packages found", len(folders))
	}
	for folder, files := range folders {
		if filepath.Base(folder) == "testdata" {
			continue
		}
		d := documentation{documented: map[string]bool{}}
		for _, path := range files {
			source, err := os.ReadFile(filepath.Join("..", path))
			if err != nil {
				t.Fatal(err)
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, source, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			if file.Name.Name != "main" {
				d.set = set
				d.file(file)
			}
		}
		for _, e := range d.bare {
			// Files for other systems declare the same names.
			if !d.documented[e.name] {
				t.Errorf("%s: %s has no documentation", e.where, e.name)
			}
		}
	}
}

// documentation collects the exported names of a package.
type documentation struct {
	set        *token.FileSet
	documented map[string]bool
	bare       []bareName
}

// bareName is an exported name without documentation, and its position.
type bareName struct{ where, name string }

// note records an exported name with its comments.
func (d *documentation) note(name *ast.Ident, of string, comments ...*ast.CommentGroup) {
	if !name.IsExported() {
		return
	}
	full := name.Name
	if of != "" {
		full = of + "." + full
	}
	for _, c := range comments {
		if c.Text() != "" {
			d.documented[full] = true
			return
		}
	}
	d.bare = append(d.bare, bareName{fmt.Sprint(d.set.Position(name.Pos())), full})
}

func (d *documentation) file(f *ast.File) {
	for _, declaration := range f.Decls {
		switch n := declaration.(type) {
		case *ast.FuncDecl:
			of := ""
			if n.Recv != nil {
				of = receiverName(n.Recv.List[0].Type)
				if !ast.IsExported(of) {
					continue
				}
			}
			d.note(n.Name, of, n.Doc)
		case *ast.GenDecl:
			for _, s := range n.Specs {
				d.spec(n, s)
			}
		}
	}
}

// spec records the names of a declaration. The comment of a group documents its constants
// only if it says that they have the names of a specification.
func (d *documentation) spec(n *ast.GenDecl, s ast.Spec) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		d.note(s.Name, "", s.Doc, s.Comment, n.Doc)
		if !s.Name.IsExported() {
			return
		}
		switch typ := s.Type.(type) {
		case *ast.StructType:
			d.fields(s.Name, typ.Fields)
		case *ast.InterfaceType:
			d.fields(s.Name, typ.Methods)
		}
	case *ast.ValueSpec:
		group := n.Doc
		if n.Lparen.IsValid() && !strings.Contains(strings.Join(strings.Fields(group.Text()), " "), "the specification's name") {
			group = nil
		}
		for _, name := range s.Names {
			d.note(name, "", s.Doc, s.Comment, group)
		}
	}
}

// fields records fields or methods. A comment above a field also documents the fields on the
// lines that follow it without a gap, and that of a type in one line its fields.
func (d *documentation) fields(of *ast.Ident, list *ast.FieldList) {
	if line := func(p token.Pos) int { return d.set.Position(p).Line }; line(of.Pos()) == line(list.End()) {
		return
	}
	var above *ast.CommentGroup
	last := 0
	for _, f := range list.List {
		first := d.set.Position(f.Pos()).Line
		switch {
		case f.Doc != nil:
			above = f.Doc
		case first > last+1:
			above = nil
		}
		last = d.set.Position(f.End()).Line
		for _, name := range f.Names {
			d.note(name, of.Name, f.Comment, above)
		}
	}
}

// receiverName returns the name of a receiver's type.
func receiverName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiverName(e.X)
	case *ast.IndexExpr:
		return receiverName(e.X)
	case *ast.IndexListExpr:
		return receiverName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
