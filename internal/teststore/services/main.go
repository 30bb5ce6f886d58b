// Command services finds or starts the servers that tests share. scripts/services is how it is called.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/onceward/onceward/internal/teststore"
)

func main() {
	if err := run(strings.Join(os.Args[1:], " ")); err != nil {
		fmt.Fprintln(os.Stderr, "onceward:", err)
		os.Exit(1)
	}
}

func run(what string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	s := teststore.Services{Root: root, Notes: os.Stderr}
	switch what {
	case "missing":
		fmt.Println(strings.Join(teststore.Missing(), " "))
		return nil
	case "stop":
		return s.Stop()
	}
	variables, err := s.Find()
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		fmt.Printf("export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
	}
	return err
}
