package dataset

// A Look is what a folder of images holds.
type Look struct {
	Images   int // files that look like images
	Labelled int // of these, the ones with a class
}

// LookInto looks for images where [Folder] would, without decoding any.
func LookInto(folder string) (Look, error) {
	p := Folder.NewParams().(*FolderParams)
	p.Path = folder
	sources, err := Folder.Sources(p, nil)
	if err != nil {
		return Look{}, err
	}
	l := Look{Images: len(sources)}
	for _, s := range sources {
		if label, err := noteLabel(s); err == nil && label >= 0 {
			l.Labelled++
		}
	}
	return l, nil
}
