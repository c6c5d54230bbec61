//go:build !unix

package ort

import "io/fs"

// Where files can't be locked, nobody can tell a process that lives from one that doesn't.
func (u *inUse) create() {}

func abandoned(string, fs.DirEntry) (path, text string, ok bool) { return "", "", false }
