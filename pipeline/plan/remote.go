package plan

import (
	"bytes"
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/runexp/runexp/stages"
)

// A Remote is a file that parameters name by its address. The parameters hold the local file to which it is
// fetched, so that nothing else differs from a local file.
type Remote struct {
	Address string
	File    string
	Places  Diags // where the address is written, without a message; flags have no line
}

// isAddress reports whether the value of a parameter that names a file is an address.
func isAddress(text string) bool { return strings.Contains(text, "://") }

// noteRemote records the address from which a file is fetched, and the place n that names it.
func (l *loader) noteRemote(n *yamlNode, file string) {
	r := l.remotes[file]
	if r == nil {
		r = &Remote{Address: n.text, File: file}
		l.remotes[file] = r
	}
	d := n.diag("", "")
	same := func(p Diag) bool { return p.File == d.File && p.Line == d.Line && p.Col == d.Col }
	if !slices.ContainsFunc(r.Places, same) {
		r.Places = append(r.Places, d)
	}
}

// Remotes returns the remote files that the cells of p read, sorted by address.
func (p *Plan) Remotes() []*Remote {
	used := map[*Remote]bool{}
	for _, c := range p.Cells {
		for _, r := range p.RemotesOf(c) {
			used[r] = true
		}
	}
	byAddress := func(a, b *Remote) int { return cmp.Compare(a.Address, b.Address) }
	return slices.SortedFunc(maps.Keys(used), byAddress)
}

// RemotesOf returns the remote files that a cell reads.
func (p *Plan) RemotesOf(c *Cell) (list []*Remote) {
	if len(p.remotes) == 0 {
		return nil
	}
	for _, f := range stages.Fields(c.Params) {
		for _, path := range filesOf(c, f) {
			if r := p.remotes[path]; r != nil {
				list = append(list, r)
			}
		}
	}
	return list
}

// Fetched reports whether the file exists.
func (r *Remote) Fetched() bool { return exists(r.File) }

// beforeText matches an anchor and a quote between the place of a value and its text.
var beforeText = regexp.MustCompile(`^(&\S+\s+)?["']?$`)

// Rewrite returns the text of an experiment with the address at a place replaced by another one. Nothing
// else changes. ok is false if the text has no such address there, for example if references make it.
func Rewrite(text []byte, at Diag, old, replacement string) (out []byte, ok bool) {
	mark := len(text) - len(bytes.TrimPrefix(text, []byte("\ufeff")))
	from := mark
	for line := 1; line < at.Line; line++ {
		n := bytes.IndexAny(text[from:], "\r\n")
		if n < 0 {
			return nil, false
		}
		if from += n + 1; text[from-1] == '\r' && from < len(text) && text[from] == '\n' {
			from++
		}
	}
	for col := 1; col < at.Col && from < len(text); col++ {
		_, n := utf8.DecodeRune(text[from:])
		from += n
	}
	line := text[from:]
	if n := bytes.IndexAny(line, "\r\n"); n >= 0 {
		line = line[:n]
	}
	n := bytes.Index(line, []byte(old))
	if at.Line == 0 || n < 0 || !beforeText.Match(line[:n]) {
		return nil, false
	}
	from += n
	return slices.Concat(text[:from], []byte(replacement), text[from+len(old):]), true
}
