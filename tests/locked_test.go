package tests

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unlocked are functions that call a method whose name ends in Locked and take no lock:
// nobody else has what they work on yet.
var unlocked []string

// A method whose name ends in Locked is called with a lock held: by a method of such a
// name, or by a function that takes a lock.
func TestLockedMethodsAreCalledWithALockHeld(t *testing.T) {
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
