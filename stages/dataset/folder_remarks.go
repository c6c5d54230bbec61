package dataset

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/archive"
	"github.com/runexp/runexp/stages/internal/english"
	"github.com/runexp/runexp/stages/internal/picture"
)

// remarks returns remarks on files of the folder that aren't used, and on files that are interpreted
// otherwise than written. It returns none if the sources can't be listed, which is an error of its own.
// Review folders repeat the remarks, so files and folders are called by their names: paths depend on the
// machine and on the working folder.
func (p FolderParams) remarks() (told []string) {
	path, name := p.Path, nameOf(p.Path)
	err := unpacked(p.files(), func() error {
		l, err := listFolder(p)
		if err != nil {
			return err
		}
		if told, err = p.unused(l, path); err != nil {
			return err
		}
		told = append(told, l.told...)
		told = append(told, doubtfulClasses(l, name)...)
		told = append(told, p.orderRemark(l, name)...)
		told = append(told, pairs(l.sources, name)...)
		if white, text := p.white(l.sources); white != 0 {
			told = append(told, text)
		}
		sources, err := p.Choice.of(l.sources)
		if err != nil {
			return err
		}
		if err := annotate(p, sources, l.classes); err != nil {
			return err
		}
		masks, err := p.lookAtMasks(sources)
		told = append(told, masks.remarks(p)...)
		return err
	})
	if err != nil {
		return nil
	}
	return told
}

// nameOf returns the name of a folder, also of the working folder.
func nameOf(folder string) string {
	if at, err := filepath.Abs(folder); err == nil {
		folder = at
	}
	return filepath.Base(folder)
}

// unused returns remarks on files in the folder, and in the folders of masks and boxes, that nothing reads.
// known is the user's path of the folder, which may be in an archive.
func (p FolderParams) unused(l *listing, known string) (told []string, err error) {
	if p.List == "" {
		p.findList() // as listFolder does
	}
	folder := nameOf(known)
	used, unlisted := map[string]bool{}, 0
	for _, s := range l.sources {
		used[imageOf(s)] = true
	}
	for _, id := range l.empty {
		used[id] = true
	}
	w := walker{skip: p.annotates}
	var lists []node // files that may be lists
	err = w.each(node{file: p.Path}, func(n node) {
		switch {
		case used[n.id]:
		case mayList(n.name) && !strings.Contains(n.id, "/") && len(lists) < mostLists:
			lists = append(lists, n)
		case w.image(n):
			unlisted++
		}
	})
	if err != nil {
		return nil, err
	}
	if unread := w.left.of(true); len(unread) > 0 {
		n := unread.total()
		told = append(told, fmt.Sprintf("left out, as their format isn't read: %d of %s in %q: %s", n,
			english.Count(n+unlisted+len(used), "picture"), folder, unread))
	}
	if unlisted > 0 {
		told = append(told, fmt.Sprintf("left out, as %s doesn't list them: %d of %s in %q",
			filepath.Base(p.List), unlisted, english.Count(unlisted+len(used), "image"), folder))
	}
	told = append(told, p.unusedLists(&w, append(lists, p.nextTo(known)...), folder, used)...)
	if others := w.left.of(false); len(others) > 0 {
		files := english.Count(others.total(), "file")
		told = append(told, fmt.Sprintf("%s in %q, no images: %s", files, folder, others))
	}
	for _, kind := range []struct{ folder, suffix, what string }{
		{p.Masks, p.MaskSuffix, "masks"}, {p.Boxes, extXML, "boxes"},
	} {
		text, err := p.unusedIn(kind.folder, kind.suffix, kind.what, used)
		if err != nil {
			return nil, err
		}
		if text != "" {
			told = append(told, text)
		}
	}
	return told, nil
}

// unusedLists returns remarks on files in a folder, or next to it, that list images. The walker counts others
// of the folder.
func (p FolderParams) unusedLists(w *walker, lists []node, folder string,
	used map[string]bool) (told []string) {
	find := &finder{folder: p.Path}
	for _, n := range lists {
		where := "in"
		if n.id == "" {
			where = "next to"
		}
		if what := p.wouldList(n.file, find, used); what != "" {
			told = append(told, fmt.Sprintf("%s %s %q %s, and isn't read: list takes it", n.name, where,
				folder, what))
		} else if n.id != "" {
			w.image(n)
		}
	}
	return told
}

// unusedIn returns how many files of a folder of masks or boxes belong to no image.
func (p FolderParams) unusedIn(folder, suffix, what string, used map[string]bool) (string, error) {
	if folder == "" || isCOCO(folder) || filepath.Clean(folder) == filepath.Clean(p.Path) {
		return "", nil
	}
	stems := map[string]bool{}
	for id := range used {
		stems[withoutExt(id)] = true
	}
	n, all := 0, 0
	w := walker{skip: func(string) bool { return false }}
	err := w.each(node{file: folder}, func(file node) {
		all++
		if stem, ok := strings.CutSuffix(file.id, suffix); !ok || !stems[stem] {
			n++
		}
	})
	if n == 0 || err != nil {
		return "", err
	}
	return fmt.Sprintf("%d of %s in the folder of %s without an image", n, english.Count(all, "file"),
		what), nil
}

// mayList reports whether a file may be a list of images, by its name.
func mayList(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".csv", ".tsv", ".txt":
		return true
	}
	return false
}

// nextTo returns the files next to the folder, or to its archive, that may be lists of its images. They
// have no ids.
func (p FolderParams) nextTo(folder string) (files []node) {
	parent, err := archive.Path(filepath.Dir(filepath.Clean(folder)))
	if err != nil {
		return nil
	}
	list, _ := os.ReadDir(parent) // if it can't be read, there is no list
	for _, e := range list {
		if file := filepath.Join(parent, e.Name()); mayList(e.Name()) && len(files) < mostLists &&
			!p.annotates(file) {
			files = append(files, node{name: e.Name(), file: file})
		}
	}
	return files
}

// How many files are searched for a list, and how many bytes of each.
const (
	mostLists = 20
	listStart = 1 << 16
)

// wouldList describes a file that may be a list of the folder's images, "" if it isn't one. find has the
// index of the folder, for one list after the other.
func (p FolderParams) wouldList(file string, find *finder, images map[string]bool) string {
	f, err := stages.OpenFile(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	b := make([]byte, listStart)
	n, _ := f.ReadAt(b, 0)
	text := string(b[:n])
	if k := strings.LastIndexByte(text, '\n'); n == len(b) && k >= 0 {
		text = text[:k+1]
	}
	p.List, p.IDs, p.First = file, "", 0
	entries, told, err := parseEntries(p, []byte(strings.TrimPrefix(text, "\ufeff")))
	if err != nil || len(entries) == 0 {
		return ""
	}
	find.list, find.entries, find.prefix = file, entries[:1], nil
	if id, err := find.find(entries[0]); err != nil || !images[id] {
		return ""
	}
	if len(told) > 0 {
		return "has " + strings.TrimSuffix(strings.TrimPrefix(told[0], filepath.Base(file)+": "), " are read")
	}
	return "lists images of the folder with their labels"
}

// doubtfulClasses returns remarks on class folders whose names suggest another purpose.
func doubtfulClasses(l *listing, folder string) (told []string) {
	if l.classes == nil || l.listed {
		return nil
	}
	var masks, images []string
	inner, deep := map[string]bool{}, true
	for _, s := range l.sources {
		parts := strings.Split(s.ID, "/")
		if len(parts) > 2 {
			inner[parts[0]+"/"+parts[1]] = true
		} else {
			deep = false
		}
	}
	for _, c := range l.classes {
		switch {
		case called(maskNames, c):
			masks = append(masks, c)
		case called(imageNames, c):
			images = append(images, c)
		}
	}
	if len(masks) > 0 && len(masks)+len(images) == len(l.classes) {
		const text = "the folders %s are read as classes: if they hold masks, masks: names their folder, " +
			"and path that of the images"
		told = append(told, fmt.Sprintf(text, quoted(slices.Concat(images, masks))))
	}
	if deep && len(inner) > len(l.classes) {
		const text = "the %d folders in %q are the classes, %s, not the %d folders in these: path names " +
			"one of them if its folders are the classes"
		told = append(told, fmt.Sprintf(text, len(l.classes), folder, someOf(l.classes), len(inner)))
	}
	return told
}

func someOf(names []string) string {
	const few = 4
	if len(names) > few {
		return strings.Join(names[:few], ", ") + " …"
	}
	return strings.Join(names, ", ")
}

// pairs returns a remark on images that have the name of another image and an ending, as masks do:
// x_mask.png and x.jpg.
func pairs(sources []stages.Source, folder string) (told []string) {
	stems := make(map[string]string, len(sources)) // the extensions of stems
	for _, s := range sources {
		stems[withoutExt(imageOf(s))] = path.Ext(imageOf(s))
	}
	n := map[string]int{}
	for stem, ext := range stems {
		dir, name := path.Split(stem)
		for k := range name {
			if k > 0 && strings.ContainsRune("_-. ", rune(name[k])) {
				if _, ok := stems[dir+name[:k]]; ok {
					n[name[k:]+ext]++
				}
			}
		}
	}
	for _, ending := range slices.Sorted(maps.Keys(n)) {
		word := strings.Trim(strings.ToLower(withoutExt(ending)), "_-. ")
		likeMasks := called(maskNames, word) || strings.HasPrefix(word, "mask") || strings.HasPrefix(word,
			"seg")
		if every := 2*n[ending] == len(stems) && n[ending] > 1; !likeMasks && !every {
			continue
		}
		const text = "%d of %d images are named like others with %q in the place of the extension, and are " +
			"read as images: if they are masks, masks, the folder %q too, with mask_suffix: %s takes them"
		told = append(told, fmt.Sprintf(text, n[ending], len(stems), ending, folder, ending))
	}
	return told
}

// How many files are examined, evenly spaced, for a property that all probably have.
const (
	headsRead = 200     // the first bytes of images
	lookedAt  = 12      // whole images and masks
	bytesRead = 1 << 25 // of images, at least one
)

// spaced returns up to n of the numbers below all, evenly spaced.
func spaced(n, all int) (list []int) {
	n = min(n, all)
	for k := range n {
		list = append(list, k*all/n)
	}
	return list
}

// white returns the value that is probably white in 16-bit pictures which don't use their whole range, and
// a remark on it; 0 if they use the range.
func (p FolderParams) white(sources []stages.Source) (white int, told string) {
	var depths []picture.Depth
	size := 0
	for _, i := range spaced(headsRead, len(sources)) {
		if len(depths) == lookedAt || size > bytesRead {
			break
		}
		if !mayBeDeep(sources[i].File) {
			continue
		}
		b, err := stages.ReadFile(sources[i].File, maxImage)
		if err != nil {
			continue // reported when it is read
		}
		size += len(b)
		if d, ok := picture.DepthOf(b); ok {
			depths = append(depths, d)
		}
	}
	if len(depths) == 0 {
		return 0, ""
	}
	largest := slices.MaxFunc(depths, func(a, b picture.Depth) int {
		return cmp.Compare(a.Largest,
			b.Largest)
	}).Largest
	white = picture.White(depths...)
	if white >= cmp.Or(p.White, wholeRange) {
		return 0, ""
	}
	return white, fmt.Sprintf("the largest value of the %d 16-bit pictures looked at is %d, %.2g %% of "+
		"white, %d: white: %d is their range if they have fewer bits", len(depths), largest,
		100*float64(largest)/float64(cmp.Or(p.White, wholeRange)), cmp.Or(p.White, wholeRange), white)
}

// mayBeDeep reports whether a file may have 16-bit channels, as its first bytes show.
func mayBeDeep(file string) bool {
	f, err := stages.OpenFile(file)
	if err != nil {
		return false
	}
	defer f.Close()
	b := make([]byte, 26)
	n, _ := f.ReadAt(b, 0)
	return picture.MayBeDeep(b[:n])
}

// A maskLook is the result of examining some masks.
type maskLook struct {
	// numbers of masks, of masks that are all object, and of masks without an object
	n, full, without int
	values           []uint16 // of all masks
}

// lookAtMasks examines some of the masks. It returns an error if one is ambiguous.
func (p FolderParams) lookAtMasks(sources []stages.Source) (look maskLook, err error) {
	seen := map[uint16]bool{}
	rule := p.maskRule()
	for _, i := range spaced(lookedAt, len(sources)) {
		file := sources[i].With[withMask]
		if file == "" {
			continue
		}
		m, err := readIndices(file)
		if err != nil {
			continue // reported when it is read
		}
		mask, err := rule.apply(m)
		if err != nil {
			return look, fmt.Errorf("the mask %q: %w", file, err)
		}
		look.n++
		object, around := 0, 0
		for k := 0; k < len(mask.Pix); k += 3 {
			switch mask.Pix[k] {
			case 1:
				object++
			case 0:
				around++
			}
		}
		if object == 0 {
			look.without++
		} else if around == 0 {
			look.full++
		}
		for _, v := range valuesOf(m) {
			seen[v] = true
		}
	}
	look.values = slices.Sorted(maps.Keys(seen))
	return look, nil
}

// remarks returns remarks on doubtful masks.
func (l maskLook) remarks(p FolderParams) (told []string) {
	if l.full > 0 {
		told = append(told, fmt.Sprintf("%d of the %d masks looked at have no background, every pixel of "+
			"them is object: no metric of localisation tells maps apart by such a mask", l.full, l.n))
	}
	if l.n > 0 && l.without == l.n {
		told = append(told, fmt.Sprintf("none of the %d masks looked at has a pixel on the object: their "+
			"values are %s",
			l.n, listed(l.values)))
	}
	if n := len(l.values); p.Object == "" && p.Ignore == "" && n > 2 && n <= fewValues {
		told = append(told, fmt.Sprintf("the values of masks are %s, and all but 0 are taken for the "+
			"object: object: says which are, 1-%d if all", listed(l.values), l.values[n-1]))
	}
	return told
}
