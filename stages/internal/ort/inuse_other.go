//go:build !unix

package ort

import "io/fs"

// Without file locks, live processes can't be told from dead ones.
func (u *inUse) create() {}

func abandoned(string, fs.DirEntry) (path, text string, ok bool) { return "", "", false }
