package dataset

// A Content counts the images in a folder.
type Content struct {
	Images   int // files with an image's extension
	Labelled int // images with a class
}

// Inspect counts the images that [Folder] would read, without decoding any.
func Inspect(folder string) (Content, error) {
	p := Folder.NewParams().(*FolderParams)
	p.Path = folder
	sources, err := Folder.Sources(p, nil)
	if err != nil {
		return Content{}, err
	}
	c := Content{Images: len(sources)}
	for _, s := range sources {
		if label, err := noteLabel(s); err == nil && label >= 0 {
			c.Labelled++
		}
	}
	return c, nil
}
