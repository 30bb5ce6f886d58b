package archtest

import (
	"flag"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the layer tables and the list of dependencies")

// TestLayers: every package has a room, and imports only what its room allows. Test files are free.
func TestLayers(t *testing.T) {
	t.Parallel()
	report(t, misplaced(sources(t)))
}

// TestRooms: the table itself is sound.
func TestRooms(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range rooms {
		if seen[r.path] {
			t.Errorf("%s has two rooms", r.path)
		}
		seen[r.path] = true
		if _, ok := layerOf(r.layer); !ok {
			t.Errorf("%s lives in layer %q, which is not in the table of layers", r.path, r.layer)
		}
		for _, b := range r.beside {
			if _, ok := roomOf(b); !ok {
				t.Errorf("%s may import %s, which has no room", r.path, b)
			}
		}
	}
}

func TestMisplaced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file, imports string
		want                string // part of the one problem; empty: none
	}{
		{"standard library", "key/a.go", `"strings"`, ""},
		{"downwards", "state/a.go", `"github.com/onceward/onceward/driver"`, ""},
		{"the root from layer 2", "oncehttp/a.go", `"github.com/onceward/onceward"`, ""},
		{"anything in layer 4", "internal/cli/a.go", `"github.com/spf13/cobra"`, ""},
		{"each command", "cmd/onceward/main.go", `"github.com/onceward/onceward/internal/cli"`, ""},
		{"its family", "observe/prom/a.go", `"github.com/prometheus/client_golang/prometheus"`, ""},
		{"test files are free", "key/a_test.go", `"github.com/onceward/onceward/internal/leak"`, ""},

		{"no room", "util/a.go", `"strings"`, "util: no layer"},
		{"a folder below a room is another room", "key/deep/a.go", `"strings"`, "key/deep: no layer"},
		{"not below every folder of a pattern", "cmd/onceward/deep/a.go", `"strings"`, "cmd/onceward/deep: no layer"},
		{"upwards to the root", "driver/a.go", `"github.com/onceward/onceward"`, "driver (layer 0) may not import the root (layer 1)"},
		{"upwards", "store/sqlstore/a.go", `"github.com/onceward/onceward/oncesql"`, "may not import oncesql (layer 2)"},
		{"sideways", "key/a.go", `"github.com/onceward/onceward/fingerprint"`, "key (layer 0) may not import fingerprint (layer 0)"},
		{"the core knows no store", "a.go", `"github.com/onceward/onceward/store/memstore"`, "the root (layer 1) may not import store/memstore"},
		{"a store from layer 2", "oncehttp/a.go", `"github.com/onceward/onceward/store/memstore"`, "may not import store/memstore (layer 1)"},
		{"wiring from a front door", "gateway/a.go", `"github.com/onceward/onceward/internal/config"`, "may not import internal/config (layer 4)"},
		{"third party in the core", "a.go", `"github.com/google/uuid"`, "may not import github.com/google/uuid"},
		{"a driver in a store", "store/sqlstore/a.go", `_ "github.com/ncruces/go-sqlite3/driver"`, "may not import github.com/ncruces/go-sqlite3/driver"},
		{"another family", "observe/prom/a.go", `"go.opentelemetry.io/otel"`, "may not import go.opentelemetry.io/otel"},
		{"a family is whole path elements", "observe/prom/a.go", `"github.com/prometheus/client_golang_fork"`, "may not import"},
		{"C", "store/sqlstore/a.go", `"C"`, "may not import C"},
		{"of no room", "gateway/a.go", `"github.com/onceward/onceward/util"`, "may not import util (no layer)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := parse(c.file, "package p\n\nimport "+c.imports+"\n")
			if err != nil {
				t.Fatal(err)
			}
			got := misplaced([]source{s})
			switch {
			case c.want == "" && len(got) > 0:
				t.Errorf("refused: %q", got)
			case c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)):
				t.Errorf("got %q, want one problem with %q", got, c.want)
			}
		})
	}
}

// misplaced returns a sentence for each package without a room and each import that its room does not allow.
func misplaced(all []source) []string {
	var problems []string
	for _, s := range all {
		if !s.owned || s.test {
			continue
		}
		from, ok := roomOf(s.dir())
		if !ok {
			p := s.dir() + ": no layer: say in rooms (internal/archtest/layers_test.go) in which layer it lives"
			if !slices.Contains(problems, p) {
				problems = append(problems, p)
			}
			continue
		}
		for _, spec := range s.file.Imports {
			to, err := strconv.Unquote(spec.Path.Value)
			if err != nil || allowed(from, s.dir(), to) {
				continue
			}
			problems = append(problems, fmt.Sprintf("%s: %s (layer %s) may not import %s: move what is needed down, or the caller up; "+
				"the table is rooms in internal/archtest/layers_test.go", at(spec), title(s.dir()), from.layer, describe(to)))
		}
	}
	return problems
}

func allowed(from room, dir, to string) bool {
	inside, ours := ours(to)
	if !ours {
		first, _, _ := strings.Cut(to, "/")
		if !strings.Contains(first, ".") && to != "C" {
			return true // the standard library
		}
		return slices.ContainsFunc(from.families, func(f string) bool {
			return f == "*" || to == f || strings.HasPrefix(to, f+"/")
		})
	}
	target, ok := roomOf(inside)
	if !ok || inside == dir {
		return false
	}
	l, _ := layerOf(from.layer)
	return slices.Contains(l.may, "*") || slices.Contains(l.may, target.layer) || slices.Contains(l.may, inside) ||
		slices.Contains(from.beside, inside)
}

// ours returns the folder of an import path of this module.
func ours(to string) (string, bool) {
	if to == module {
		return ".", true
	}
	return strings.CutPrefix(to, module+"/")
}

func roomOf(dir string) (room, bool) {
	for _, r := range rooms {
		above, pattern := strings.CutSuffix(r.path, "/*")
		if r.path == dir || pattern && path.Dir(dir) == above {
			return r, true
		}
	}
	return room{}, false
}

func layerOf(name string) (layer, bool) {
	i := slices.IndexFunc(layers, func(l layer) bool { return l.name == name })
	if i < 0 {
		return layer{}, false
	}
	return layers[i], true
}

func title(dir string) string {
	if dir == "." {
		return "the root"
	}
	return dir
}

func describe(to string) string {
	inside, ours := ours(to)
	if !ours {
		return to
	}
	if r, ok := roomOf(inside); ok {
		return fmt.Sprintf("%s (layer %s)", title(inside), r.layer)
	}
	return inside + " (no layer)"
}
