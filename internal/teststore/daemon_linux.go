package teststore

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// ordinary returns the user that root's servers run as; nil when this process is an ordinary user itself.
func ordinary() *syscall.Credential {
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			continue
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			continue
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	return &syscall.Credential{Uid: 65534, Gid: 65534}
}

// attributes of a server process. Tied, it is killed when the process that started it dies.
func attributes(tied bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Credential: ordinary(), Setsid: true}
	if tied {
		a.Pdeathsig = syscall.SIGKILL
	}
	return a
}

// give makes a folder the servers' user's.
func give(dir string) error {
	c := ordinary()
	if c == nil {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = os.Chown(path, int(c.Uid), int(c.Gid))
		}
		return err
	})
}

// reachable reports whether the servers' user can get to a folder that is in dir.
func reachable(dir string) bool {
	if ordinary() == nil {
		return true
	}
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

// children returns the processes that a process started.
func children(of int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", of))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, field := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
