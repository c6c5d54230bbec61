package dataset

import "github.com/runexp/runexp/stages/internal/archive"

// unpacked calls read with archives unpacked: the paths of files and folders are then paths in the cache,
// and errors name the paths that the user knows.
func unpacked(paths []*string, read func() error) error {
	known := make([]string, len(paths))
	for i, path := range paths {
		var err error
		if known[i] = *path; *path == "" {
			continue
		}
		if *path, err = archive.Path(*path); err != nil {
			return err
		}
	}
	err := read()
	for i, path := range paths {
		err = archive.Shown(err, known[i], *path)
	}
	return err
}
