package tests

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/tests/vktest"
)

// The table of locks in docs/architecture.md is the one of package lockrank.
func TestDocumentationHasTheTableOfLocks(t *testing.T) {
	text, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	want.WriteString("| lock | guards |\n|---|---|\n")
	for _, l := range lockrank.Table {
		fmt.Fprintf(&want, "| `%s` | %s |\n", strings.Join(l.Fields, "`, `"), l.Guards)
	}
	if !strings.Contains(string(text), "\n"+want.String()+"\n") {
		t.Errorf("docs/architecture.md does not have this table:\n%s", &want)
	}
}

// Every lock with a rank is in the table with that rank, and the table has no others.
func TestTableOfLocksHasTheFieldsOfTheSources(t *testing.T) {
	vktest.Once(t)
	got, want := make(map[string]string), make(map[string]string)
	for _, file := range moduleFiles(t) {
		if file.test || file.c {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", filepath.FromSlash(file.path)), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			structure, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, f := range structure.Fields.List {
				rank := rankedField.FindStringSubmatch(types.ExprString(f.Type))
				if rank == nil {
					continue
				}
				for _, name := range f.Names {
					got[parsed.Name.Name+"."+spec.Name.Name+"."+name.Name] = rank[1]
				}
			}
			return true
		})
	}
	for _, l := range lockrank.Table {
		for _, f := range l.Fields {
			want[f] = fmt.Sprintf("%T", l.Rank)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ranks of locks (-table +sources):\n%s", diff)
	}
}

var rankedField = regexp.MustCompile(`^lockrank\.(?:RW)?Mutex\[(lockrank\.\w+)\]$`)

// unlocked are functions that name a method whose name ends in Locked and take no lock:
// nobody else has what they work on yet, or they pass it on to who calls it with the lock held.
var unlocked = []string{"sched.New", "sched.NewTrace"}

// A method whose name ends in Locked is called with a lock held: by a method of such a
// name, or by a function that takes a lock.
func TestLockedMethodsAreCalledWithALockHeld(t *testing.T) {
	vktest.Once(t)
	for _, file := range moduleFiles(t) {
		if file.test || file.c || strings.HasPrefix(file.path, "tests/") {
			continue
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, filepath.Join("..", filepath.FromSlash(file.path)), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, breach := range callsWithoutLock(fset, parsed) {
			t.Error(file.path + ": " + breach)
		}
	}
}

// callsWithoutLock returns the functions of a file that call methods whose names end in
// Locked, take no lock and are not called with one held.
func callsWithoutLock(fset *token.FileSet, file *ast.File) (found []string) {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil || strings.HasSuffix(f.Name.Name, "Locked") || slices.Contains(unlocked, file.Name.Name+"."+f.Name.Name) {
			continue
		}
		takes, calls := false, ""
		ast.Inspect(f.Body, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			takes = takes || takesLock.MatchString(s.Sel.Name)
			if calls == "" && strings.HasSuffix(s.Sel.Name, "Locked") {
				calls = s.Sel.Name
			}
			return true
		})
		if calls != "" && !takes {
			found = append(found, fmt.Sprintf("line %d: %s calls %s and takes no lock", fset.Position(f.Pos()).Line, f.Name.Name, calls))
		}
	}
	return found
}

var takesLock = regexp.MustCompile(`^(Try)?R?Lock$|^lock$`)

func TestCallsWithoutALockAreFound(t *testing.T) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "a.go", `package a

func (t *T) right() { t.mu.Lock(); defer t.mu.Unlock(); t.workLocked() }
func (t *T) restLocked() { t.workLocked() }
func (t *T) wrong() { t.workLocked() }
func (t *T) hidden() { defer func() { t.workLocked() }() }
`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"line 5: wrong calls workLocked and takes no lock", "line 6: hidden calls workLocked and takes no lock"}
	if diff := cmp.Diff(want, callsWithoutLock(fset, file)); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}
