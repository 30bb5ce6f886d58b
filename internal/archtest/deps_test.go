package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// listed is what go list tells about a package.
type listed struct {
	ImportPath string
	Name       string
	Standard   bool
	Module     *struct{ Path string }
	Deps       []string
	Error      *struct{ Err string }
}

// TestDependencies: the third-party modules behind non-test code are those of testdata/deps.golden. What a user of a
// package gets into his build is part of that package's face, so a change of it has to be seen in review.
func TestDependencies(t *testing.T) {
	t.Parallel()
	packages := list(t)
	reached := map[string][]string{}
	for _, p := range packages {
		if dir, ok := ours(p.ImportPath); ok {
			reached[dir] = thirdParty(p, packages)
		}
	}

	var b bytes.Buffer
	fmt.Fprintln(&b, "# Third-party modules that non-test code reaches (linux/amd64), by package that others import or run.")
	fmt.Fprintln(&b, "# A package that is not named reaches none. Rewritten by: make golden")
	for _, dir := range slices.Sorted(maps.Keys(reached)) {
		if len(reached[dir]) == 0 || strings.HasPrefix(dir, "internal/") {
			continue // what internal packages reach is seen at the command that imports them
		}
		fmt.Fprintf(&b, "\n%s\n", dir)
		for _, m := range reached[dir] {
			fmt.Fprintf(&b, "\t%s\n", m)
		}
	}
	golden(t, "internal/archtest/testdata/deps.golden", b.Bytes())

	// The golden file can be rewritten; this cannot.
	for dir, modules := range reached {
		r, ok := roomOf(dir)
		if ok && len(r.families) == 0 && len(modules) > 0 {
			t.Errorf("%s has to stand on the standard library, but reaches %q", title(dir), modules)
		}
	}
}

// thirdParty returns the modules, sorted, of all that p imports directly or not.
func thirdParty(p listed, packages map[string]listed) []string {
	modules := map[string]bool{}
	for _, dep := range p.Deps {
		if m := packages[dep].Module; m != nil && m.Path != module {
			modules[m.Path] = true
		}
	}
	return slices.Sorted(maps.Keys(modules))
}

// list asks go for the packages of the module and all that they import, on one platform so that every machine sees
// the same.
func list(t *testing.T) map[string]listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-deps",
		"-json=ImportPath,Name,Standard,Module,Deps,Error", "./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	packages := map[string]listed{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Error != nil {
			t.Errorf("%s: %s", p.ImportPath, p.Error.Err)
		}
		packages[p.ImportPath] = p
	}
}
