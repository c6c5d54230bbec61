package dataset

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// A finder finds the files of a list in the folder of the images. It remarks once on each kind of
// difference between a listed path and the file's.
type finder struct {
	folder, list string
	entries      []entry // the list's
	prefix       *string // the beginning of the list's paths that stands for the folder
	index        *index  // of the folder, made at the first path that isn't a file as written
	told         []string
}

// absent is the error of a listed file that isn't in the folder.
type absent struct{ error }

// find returns the path of a listed file relative to the folder.
func (f *finder) find(e entry) (string, error) {
	exact := path.Clean(e.file)
	if filepath.IsLocal(filepath.FromSlash(exact)) {
		if id, err := locate(f.folder, e, exact); id != "" || err != nil {
			return id, err
		}
	}
	if f.index == nil {
		index, err := indexOf(f.folder)
		if err != nil {
			return "", err
		}
		f.index = index
	}
	file := slashes(e.file)
	ids, how := f.index.find(file)
	if ids == nil {
		var err error
		if ids, how, err = f.below(e, file); err != nil {
			return "", err
		}
	}
	switch {
	case len(ids) > 1:
		return "", fmt.Errorf("the file %q may be %q or %q", e.file, ids[0], ids[1])
	case ids == nil && !filepath.IsLocal(filepath.FromSlash(file)):
		return "", absent{fmt.Errorf("the file %q isn't inside the folder", e.file)}
	case ids == nil:
		return "", absent{fmt.Errorf("file %q: no such file in the folder", e.file)}
	case how != "":
		f.tell(how)
	}
	if file != exact {
		f.tell("backslashes are taken for slashes")
	}
	return ids[0], nil
}

// below finds a file whose path is absolute, or relative to another folder than that of the images: to the
// list's folder, or to one that corresponds to the images' folder.
func (f *finder) below(e entry, file string) (ids []string, how string, err error) {
	for _, from := range []string{"", filepath.Dir(f.list), f.folder} {
		at := filepath.FromSlash(file)
		if !filepath.IsAbs(at) {
			if from == "" {
				continue
			}
			at = filepath.Join(from, at)
		}
		if _, err := os.Stat(at); err != nil {
			continue
		}
		if id := inside(f.folder, at); id != "" {
			return []string{id}, "", nil
		}
		if !filepath.IsLocal(filepath.FromSlash(file)) {
			// A file with the same end may be another one.
			return nil, "", fmt.Errorf("the file %q isn't inside the folder", e.file)
		}
	}
	if f.prefix == nil {
		prefix, err := f.commonPrefix()
		if err != nil {
			return nil, "", err
		}
		f.prefix = &prefix
		if prefix != "" {
			f.tell(fmt.Sprintf("%q is taken for the folder of the images", prefix))
		}
	}
	if rest, ok := strings.CutPrefix(file, *f.prefix); ok && *f.prefix != "" {
		ids, how = f.index.find(rest)
	}
	return ids, how, nil
}

// commonPrefix returns the beginning of a list's paths that stands for the folder: the rest of a path
// before the longest end that is a file's path. Of several it is the one that ends with the folder's name.
// A relative path must begin with that name.
func (f *finder) commonPrefix() (string, error) {
	base := norm.NFC.String(filepath.Base(filepath.Clean(f.folder))) + "/"
	var prefixes []string
	for _, e := range f.entries {
		file := slashes(e.file)
		for k := range max(len(file)-1, 0) {
			if file[k] != '/' {
				continue
			}
			prefix := file[:k+1]
			rooted := file[0] == '/' || len(file) > 2 && file[1] == ':' && file[2] == '/'
			named := norm.NFC.String(prefix) == base || strings.HasSuffix(norm.NFC.String(prefix), "/"+base)
			if !rooted && (!named || strings.HasPrefix(file, "../")) || slices.Contains(prefixes, prefix) {
				continue
			}
			if ids, _ := f.index.find(file[k+1:]); ids != nil {
				prefixes = append(prefixes, prefix)
				break
			}
		}
	}
	if len(prefixes) > 1 {
		named := slices.DeleteFunc(slices.Clone(prefixes), func(p string) bool {
			return !strings.HasSuffix(norm.NFC.String(p), "/"+base)
		})
		if len(named) != 1 {
			return "", fmt.Errorf("the folder of the images may be %q or %q in it", prefixes[0], prefixes[1])
		}
		prefixes = named
	}
	return strings.Join(prefixes, ""), nil
}

// slashes returns a cleaned path with slashes, also for one with backslashes.
func slashes(file string) string { return path.Clean(strings.ReplaceAll(file, `\`, "/")) }

// inside returns the path of a file relative to a folder that contains it, with slashes; "" if it doesn't.
func inside(folder, file string) string {
	for _, real := range []bool{false, true} {
		a, errA := filepath.Abs(folder)
		b, errB := filepath.Abs(file)
		if errA == nil && errB == nil && real {
			a, errA = filepath.EvalSymlinks(a)
			b, errB = filepath.EvalSymlinks(b)
		}
		if errA != nil || errB != nil {
			continue
		}
		if rel, err := filepath.Rel(a, b); err == nil && filepath.IsLocal(rel) && rel != "." {
			return filepath.ToSlash(rel)
		}
	}
	return ""
}

// tell adds a remark on a list, once.
func (f *finder) tell(text string) {
	text = filepath.Base(f.list) + ": " + text
	if !slices.Contains(f.told, text) {
		f.told = append(f.told, text)
	}
}

// An index finds the files of a folder although their paths differ from the listed ones: in the composition
// of letters (macOS decomposes é into e and an accent), in their case, or in an extension that the list
// leaves out.
type index struct {
	composed, folded, stems map[string][]string
}

// indexOf lists the files of a folder.
func indexOf(folder string) (*index, error) {
	x := &index{map[string][]string{}, map[string][]string{}, map[string][]string{}}
	w := walker{skip: func(string) bool { return false }}
	err := w.each(node{file: folder}, func(n node) {
		id := norm.NFC.String(n.id)
		x.composed[id] = append(x.composed[id], n.id)
		x.folded[strings.ToLower(id)] = append(x.folded[strings.ToLower(id)], n.id)
		if imageExtensions[strings.ToLower(path.Ext(n.name))] {
			stem := strings.ToLower(withoutExt(id))
			x.stems[stem] = append(x.stems[stem], n.id)
		}
	})
	return x, err
}

// find returns the files that a path may mean, several if it is ambiguous, and how their paths differ from
// it if that is worth a remark.
func (x *index) find(file string) (ids []string, how string) {
	file = norm.NFC.String(file)
	lower := strings.ToLower(file)
	for _, by := range []struct {
		ids []string
		how string
	}{
		{x.composed[file], ""},
		{x.folded[lower], "upper and lower case differ from the files'"},
		{x.stems[lower], ""},
	} {
		if len(by.ids) > 0 {
			return by.ids, by.how
		}
	}
	return nil, ""
}

// locate returns the path of a listed file relative to the folder, "" if there is none. A list may leave
// out the extension, and the folder of all images or of a class.
func locate(folder string, e entry, exact string) (string, error) {
	names := []string{exact}
	if e.bare {
		for _, ext := range []string{".jpg", ".JPEG", ".jpeg", ".png"} {
			names = append(names, exact+ext, "images/"+exact+ext)
			if filepath.IsLocal(filepath.FromSlash(e.label)) {
				names = append(names, path.Join(e.label, exact+ext))
			}
		}
	}
	var why error
	for _, id := range names {
		info, err := os.Stat(filepath.Join(folder, filepath.FromSlash(id)))
		switch {
		case err == nil && info.Mode().IsRegular():
			return id, nil
		case err == nil:
			why = fmt.Errorf("%q isn't a regular file", e.file)
		}
	}
	return "", why
}
