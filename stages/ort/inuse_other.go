//go:build !unix

package ort

import "io/fs"

// Without file locks a file of a live process can't be told from one of a dead process, so none are made.
func (u *inUse) create() {}

func abandoned(string, fs.DirEntry) (path, text string, ok bool) { return "", "", false }
