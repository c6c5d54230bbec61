package publish

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/runexp/runexp/pipeline/typeset"
)

// mostNotes is how many notes a folder has at most.
const mostNotes = 40

// notes lists what README.md says of the run, in paragraphs of Markdown: first its head without the texts of
// stages, then what isn't of this run or of the whole experiment. Quotations are warnings.
func (f *Folder) notes() []string {
	list := f.Warnings()
	if len(f.Passages) == 0 && f.Opening() != "" {
		list = append(list, f.Opening())
	}
	list = slices.Concat(list, f.Guesses(), f.QuotedRemarks(), f.Unfinished())
	for _, text := range f.Partial() {
		list = append(list, "> "+text)
	}
	return list[:min(len(list), mostNotes)]
}

// QuotedRemarks returns the remarks on the data as quotations.
func (f *Folder) QuotedRemarks() (quotes []string) {
	for _, remark := range f.Remarks {
		quotes = append(quotes, "> **Data:** "+typeset.Inline(remark))
	}
	return quotes
}

// Unfinished returns quotations on the cells without results, and on what that means for the folder.
func (f *Folder) Unfinished() (quotes []string) {
	if len(f.Failed)+len(f.Blocked) == 0 {
		return nil
	}
	published := map[string]bool{}
	for _, l := range f.Lines {
		published[l.Cell] = true
	}
	add := func(what string, cells []string, names func(cell string) string) {
		if len(cells) == 0 {
			return
		}
		list := make([]string, len(cells))
		for i, cell := range cells {
			list[i] = names(cell)
		}
		quotes = append(quotes, fmt.Sprintf("> **%s (%s): %s", what, count(len(cells), "cell"),
			some(list, namedCells)))
	}
	earlier := func(cell string) string {
		if published[cell] {
			return typeset.Code(cell) + " (shown as an earlier run left it)"
		}
		return typeset.Code(cell)
	}
	add("Failed**", f.Failed, earlier)
	add("Not run, because something it needs failed or the run was stopped**", f.Blocked, earlier)
	quotes = append(quotes, "> Nothing was removed. What these cells would have changed is as it was.")
	add("No longer in the experiment**, but shown with the rest until nothing fails any more", f.Gone,
		typeset.Code)
	return quotes
}

// Partial returns paragraphs on why the folder isn't of one run of the whole experiment: what the run left
// out, and which files are of an earlier run.
func (f *Folder) Partial() (paragraphs []string) {
	if len(f.Narrowed) > 0 {
		text := "**Narrowed**, so this is not the whole experiment:\n"
		for _, what := range f.Narrowed {
			text += "\n- " + typeset.Inline(what)
		}
		paragraphs = append(paragraphs, text)
	}
	if len(f.Kept) > 0 {
		text := "Of an earlier run, because something failed in this one:\n"
		for _, file := range f.Kept {
			text += "\n- [" + typeset.Alt(path.Base(file)) + "](" + typeset.Target(file) + ")"
		}
		paragraphs = append(paragraphs, text)
	}
	return paragraphs
}

// quotation joins quotations of one paragraph.
func quotation(quotes []string) string { return strings.Join(quotes, "\n>\n") }
