// Package python holds the module runexp_xai, by which the command starts Python.
package python

import "embed"

// Module has the files of the module, below the folder of this package.
//
//go:embed runexp_xai/*.py
var Module embed.FS
