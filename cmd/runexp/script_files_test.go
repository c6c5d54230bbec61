package main

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// makePipe makes named pipes: opening one for reading blocks.
func makePipe(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		ts.Check(syscall.Mkfifo(ts.MkAbs(name), 0o600))
	}
}

// packFolder packs a folder as a zip file.
func packFolder(ts *testscript.TestScript, _ bool, args []string) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	ts.Check(w.AddFS(os.DirFS(ts.MkAbs(args[1]))))
	ts.Check(w.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b.Bytes(), 0o666))
}

// remembered holds, by a script's folder, what rememberFolders saw.
var remembered sync.Map

// rememberFolders keeps what is in folders, for the command "untouched".
func rememberFolders(ts *testscript.TestScript, _ bool, args []string) {
	all := map[string]map[string]string{}
	for _, dir := range args {
		all[ts.MkAbs(dir)] = contents(ts, ts.MkAbs(dir))
	}
	remembered.Store(ts.Getenv("WORK"), all)
}

// untouchedFolders fails unless the folders that were remembered are as they were.
func untouchedFolders(ts *testscript.TestScript, _ bool, _ []string) {
	all, ok := remembered.Load(ts.Getenv("WORK"))
	if !ok {
		ts.Fatalf("no folder was remembered")
	}
	for dir, before := range all.(map[string]map[string]string) {
		now := contents(ts, dir)
		for _, name := range slices.Sorted(maps.Keys(now)) {
			if now[name] != before[name] {
				ts.Fatalf("%s in %s is new or another", name, dir)
			}
		}
		for name := range before {
			if _, ok := now[name]; !ok {
				ts.Fatalf("%s in %s is gone", name, dir)
			}
		}
	}
}

// contents returns what is below a folder, without following links.
func contents(ts *testscript.TestScript, dir string) map[string]string {
	all := map[string]string{}
	ts.Check(filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += string(b)
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			text += to
		}
		all[path] = text
		return nil
	}))
	return all
}
