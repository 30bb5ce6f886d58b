package archtest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// source is one Go file of the repository.
type source struct {
	path  string // from the root of the repository, with slashes
	owned bool   // belongs to the released module, not to one below it
	test  bool
	lines int
	file  *ast.File
}

var positions = token.NewFileSet() // of all files; safe for concurrent use

func (s source) dir() string { return path.Dir(s.path) }

// at says where n stands, for messages.
func at(n ast.Node) string { return positions.Position(n.Pos()).String() }

// parse makes a source out of text, for the tree and for the tests of the rules themselves.
func parse(name, text string) (source, error) {
	file, err := parser.ParseFile(positions, name, text, parser.ParseComments|parser.SkipObjectResolution)
	return source{
		path: name, owned: true, test: strings.HasSuffix(name, "_test.go"),
		lines: strings.Count(text, "\n"), file: file,
	}, err
}

const root = "../.."

// walk visits the files of the repository that are written here: no testdata, nothing hidden, nothing installed.
func walk(visit func(name string, text []byte) error) error {
	return filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case file == root:
			return nil
		case entry.IsDir():
			if strings.HasPrefix(entry.Name(), ".") || strings.HasPrefix(entry.Name(), "_") ||
				slices.Contains([]string{"bin", "node_modules", "testdata"}, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		case !slices.Contains([]string{".css", ".go", ".html", ".js", ".lua", ".mod", ".py", ".sql"}, path.Ext(file)):
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return visit(strings.TrimPrefix(filepath.ToSlash(file), root+"/"), text)
	})
}

// tree reads every Go file once, whatever its build tags: a rule that holds only where the test runs does not hold.
var tree = sync.OnceValues(func() ([]source, error) {
	var all []source
	var below []string // folders of other modules
	err := walk(func(name string, text []byte) error {
		if path.Base(name) == "go.mod" && name != "go.mod" {
			below = append(below, path.Dir(name)+"/")
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		s, err := parse(name, string(text))
		all = append(all, s)
		return err
	})
	for i, s := range all {
		all[i].owned = !slices.ContainsFunc(below, func(dir string) bool { return strings.HasPrefix(s.path, dir) })
	}
	return all, err
})

// sources returns the Go files of the repository and stops the test when one cannot be read.
func sources(t *testing.T) []source {
	t.Helper()
	all, err := tree()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// report fails the test with each problem on a line of its own.
func report(t *testing.T, problems []string) {
	t.Helper()
	for _, p := range problems {
		t.Error(p)
	}
}

// golden compares got with a file of this repository; with -update it writes the file instead.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	file = filepath.Join(root, file)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the tree says; run make golden and judge the difference. It should be:\n%s", file, got)
	}
}
