package teststore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// daemon is a server program with a folder of its own. Servers refuse root: root's run as an ordinary user who owns the
// folder.
type daemon struct {
	program string
	args    []string
	dir     string
	port    int
	ready   func(context.Context) error // whether it answers

	running *exec.Cmd
	gone    chan struct{} // closed when it has ended
}

// folders are where packages put programs that people do not call themselves.
func folders() []string {
	return []string{
		"/usr/sbin", "/usr/local/sbin", "/usr/libexec", "/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/libexec/postgresql*",
		"/opt/homebrew/opt/*/bin", "/usr/local/opt/*/bin",
	}
}

// The programs that tests need, by the names that they may have.
var (
	postgres  = []string{"postgres"}
	mariaDB   = []string{"mariadbd", "mysqld"}
	installDB = []string{"mariadb-install-db", "mysql_install_db"}
	pooler    = []string{"pgbouncer"}
)

// program returns where the first of the names is that is installed, empty for none.
func program(names ...string) string {
	for _, name := range names {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
		for _, f := range folders() {
			if found, _ := filepath.Glob(filepath.Join(f, name)); len(found) > 0 {
				return slices.Max(found) // the newest version
			}
		}
	}
	return ""
}

// beside returns another program of the same version.
func beside(path, name string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return filepath.Join(filepath.Dir(path), name)
}

var errNotInstalled = errors.New("a server program that tests start is not installed: scripts/services installs it, or says how to")

// newDaemon makes its folder at dir, or a temporary one.
func newDaemon(dir, path string) (*daemon, error) {
	if path == "" {
		return nil, errNotInstalled
	}
	var err error
	if dir == "" {
		dir, err = os.MkdirTemp("", "onceward-")
	} else {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return nil, err
	}
	d := &daemon{program: path, dir: dir}
	if err := give(dir); err != nil {
		return nil, err
	}
	d.port, err = freePort()
	return d, err
}

func (d *daemon) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(d.port)) }

// tool runs a program as the daemon's user, to its end.
func (d *daemon) tool(path string, args ...string) error {
	cmd := exec.CommandContext(context.Background(), path, args...)
	cmd.Dir, cmd.Env = d.dir, d.env()
	cmd.SysProcAttr = attributes(false)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(path), err, out)
	}
	return nil
}

// env gives temporary files a place of their own: a MariaDB server that starts deletes those of the others.
func (d *daemon) env() []string { return append(os.Environ(), "TMPDIR="+d.dir) }

// patience is how long a server may take until it answers, recovery after a kill included.
const patience = time.Minute

// start starts the program and waits until it answers. Tied, it ends with this process, however that ends.
func (d *daemon) start(tied bool) error {
	until := time.Now().Add(patience)
	for {
		err := d.run(tied)
		if err != nil {
			return err
		}
		for err = d.ready(context.Background()); err != nil; err = d.ready(context.Background()) {
			select {
			case <-d.gone:
				err = errEnded
			default:
				time.Sleep(20 * time.Millisecond)
			}
			if errors.Is(err, errEnded) || time.Now().After(until) {
				break
			}
		}
		switch {
		case err == nil:
			return nil
		case time.Now().After(until):
			return fmt.Errorf("%s: %w\n%s", d.program, err, d.said())
		}
		time.Sleep(100 * time.Millisecond) // what a kill left behind may still be going: memory, a lock, the port
	}
}

var errEnded = errors.New("it ended")

func (d *daemon) run(tied bool) error {
	log, err := os.OpenFile(d.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.CommandContext(context.Background(), d.program, d.args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = d.dir, d.env(), log, log
	cmd.SysProcAttr = attributes(tied)
	if err := cmd.Start(); err != nil {
		return err
	}
	gone := make(chan struct{})
	d.running, d.gone = cmd, gone
	go func() {
		_ = cmd.Wait()
		close(gone)
	}()
	return nil
}

func (d *daemon) log() string { return filepath.Join(d.dir, "log") }

// said is the end of its log.
func (d *daemon) said() string {
	text, _ := os.ReadFile(d.log())
	return string(text[max(0, len(text)-2000):])
}

// end sends a signal and waits until the program has ended. One that does not want to is killed.
func (d *daemon) end(how syscall.Signal) {
	if d.running == nil {
		return
	}
	var left []int
	if how == syscall.SIGKILL {
		left = children(d.running.Process.Pid)
	}
	_ = d.running.Process.Signal(how)
	for _, pid := range left { // they would go on for a while, and still commit
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}
	select {
	case <-d.gone:
	case <-time.After(patience / 2):
		_ = d.running.Process.Kill()
		<-d.gone
	}
	d.running = nil
}

// freePort returns a port that nobody listens on.
func freePort() (int, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}
