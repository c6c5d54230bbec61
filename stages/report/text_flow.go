package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/bidi"

	"github.com/runexp/runexp/stages/internal/chart"
	"github.com/runexp/runexp/stages/spans"
)

// A flow is a text in lines.
type flow struct {
	lines       [][]atom // from left to right
	width       float64  // of the longest line
	rightToLeft bool     // the text begins at the right
}

// An atom is a text of one direction that no line breaks.
type atom struct {
	text  string
	span  int // the position of the span it belongs to
	width float64
	x     float64 // from the beginning of its line
	level int     // of direction, as in Unicode's annex 9: odd from right to left
	// free allows a line to end before the atom, and ends forces it to end there.
	free, ends bool
	space      bool
}

const (
	mostAtoms  = 40_000 // of a text: more than any figure has room for
	mostBeyond = 120    // characters that are shown behind the last token
)

// setFlow breaks a text into lines.
func (s *textPage) setFlow(b *textBlock) {
	f := &flower{page: s, block: b, font: chart.Font{Size: s.Size}}
	for i, span := range b.spans {
		if len(f.atoms) > mostAtoms {
			break
		}
		f.addSpan(i, span)
	}
	whole := base(b.spans)
	setLevels(f.atoms, whole)
	b.flow.rightToLeft = whole == 1
	lines := f.lines(s.room())
	shown := map[int]bool{}
	for i, line := range lines {
		if i == s.Lines {
			break
		}
		line = leftToRight(line)
		x := 0.0
		for k := range line {
			shown[line[k].span] = true
			line[k].x = x
			x += line[k].width
		}
		b.flow.lines, b.flow.width = append(b.flow.lines, line), max(b.flow.width, x)
	}
	for i, span := range b.spans {
		if !shown[i] && !s.hides(span) {
			s.leftToCut += len(span.Tokens)
		}
	}
}

func (s *textPage) hides(span spans.Span) bool {
	return span.Kind == spans.Special && s.Special == "hide"
}

// A flower makes the atoms of a text.
type flower struct {
	page  *textPage
	block *textBlock
	font  chart.Font
	atoms []atom

	free, ends bool // before the next atom a line may, or must, end
}

// addSpan adds the atoms of a span.
func (f *flower) addSpan(i int, span spans.Span) {
	switch {
	case f.page.hides(span):
	case span.Kind == spans.Between:
		f.addBetween(i, span.Text)
	case span.Kind == spans.Beyond:
		text := []rune(span.Text)
		if len(text) > mostBeyond {
			more := fmt.Sprintf("… (%d more characters)", len(text)-mostBeyond)
			text = append(slices.Clone(text[:mostBeyond]), []rune(more)...)
		}
		f.addBetween(i, string(text))
	case span.Kind == spans.Token:
		inner := strings.Trim(span.Text, " ")
		if inner == "" { // a token that is a space is seen by its colour
			f.put(atom{text: span.Text, span: i, width: f.slot(i, span.Text)})
			return
		}
		if strings.HasPrefix(span.Text, " ") {
			f.addSpace(i)
		}
		f.addToken(i, inner)
		if strings.HasSuffix(span.Text, " ") {
			f.addSpace(i)
		}
		f.ends = f.ends || strings.Contains(span.Text, "\n")
	default: // between spaces, like a word
		f.addSpace(i)
		f.addToken(i, span.Text)
		f.addSpace(i)
	}
}

// addSpace adds a space, unless there is one already.
func (f *flower) addSpace(i int) {
	if n := len(f.atoms) - 1; n >= 0 && !f.atoms[n].space && !f.ends {
		f.put(atom{text: " ", span: i, width: f.font.Width(" "), space: true})
		f.free = true
	}
}

// addBetween adds text that no token stands for.
func (f *flower) addBetween(i int, text string) {
	var word strings.Builder
	flush := func() {
		if word.Len() > 0 {
			f.addParts(i, spans.Visible(word.String()))
			word.Reset()
		}
	}
	for _, r := range text {
		switch {
		case r == '\n' || r == '\u2028' || r == '\u2029':
			flush()
			f.ends = len(f.atoms) > 0
		case unicode.IsSpace(r):
			flush()
			f.addSpace(i)
		default:
			word.WriteRune(r)
		}
	}
	flush()
}

// addToken adds the atoms of a token. Its first one has room for the value below it.
func (f *flower) addToken(i int, text string) {
	n := len(f.atoms)
	f.addParts(i, joiners(f.before(i), spans.Visible(text), f.after(i)))
	wide := 0.0
	for _, a := range f.atoms[n:] {
		wide += a.width
	}
	if n < len(f.atoms) {
		f.atoms[n].width += max(f.slot(i, "")-wide, 0)
	}
}

// before and after return the texts that touch a token's.
func (f *flower) before(i int) string {
	if i > 0 && f.block.spans[i-1].Kind == spans.Token {
		return f.block.spans[i-1].Text
	}
	return ""
}

func (f *flower) after(i int) string {
	if i+1 < len(f.block.spans) && f.block.spans[i+1].Kind == spans.Token {
		return f.block.spans[i+1].Text
	}
	return ""
}

// slot returns the width of a text, or of the widest value below it.
func (f *flower) slot(i int, text string) float64 {
	wide := f.font.Reach(text)
	if f.page.Values {
		for _, t := range f.block.tiles {
			if t != nil {
				wide = max(wide, f.page.valueFont().Width(valueText(t.values[i]))+2)
			}
		}
	}
	return wide
}

// addParts adds a text in parts of one direction and, in scripts without spaces, of one character.
func (f *flower) addParts(i int, text string) {
	room := f.page.room()
	for _, part := range directions(text) {
		if f.font.Reach(part) <= room {
			f.put(atom{text: part, span: i, width: f.font.Reach(part)})
			continue
		}
		piece := ""
		for k, c := range spans.Clusters(part) {
			if k > 0 && f.font.Reach(piece+c) > room {
				f.put(atom{text: piece, span: i, width: f.font.Reach(piece)})
				f.free, piece = true, ""
			}
			if piece += c; len(f.atoms) > mostAtoms {
				break
			}
		}
		f.put(atom{text: piece, span: i, width: f.font.Reach(piece)})
	}
}

func (f *flower) put(a atom) {
	if n := len(f.atoms) - 1; n >= 0 && !f.atoms[n].space && breaksBetween(f.atoms[n].text, a.text) {
		f.free = true
	}
	a.free, a.ends = f.free, f.ends
	f.free, f.ends = false, false
	f.atoms = append(f.atoms, a)
	f.page.lacking += f.font.Lacks(a.text)
}

// breaksBetween reports whether a line may end between two texts since their script has no spaces.
func breaksBetween(a, b string) bool {
	before, after := []rune(a), []rune(b)
	if len(before) == 0 || len(after) == 0 {
		return false
	}
	p, q := before[len(before)-1], after[0]
	return (spans.Unspaced(p) || spans.Unspaced(q)) && !unicode.IsPunct(q)
}

// lines breaks atoms into lines of at most room points, without spaces at their ends.
func (f *flower) lines(room float64) (lines [][]atom) {
	var line []atom
	end := func() {
		for n := len(line) - 1; n >= 0 && line[n].space; n-- {
			line = line[:n]
		}
		if len(line) > 0 {
			lines = append(lines, line)
		}
		line = nil
	}
	used := 0.0
	for i := 0; i < len(f.atoms); {
		k, wide := i+1, f.atoms[i].width // atoms i to k−1 stay together
		for k < len(f.atoms) && !f.atoms[k].space && !f.atoms[k].free && !f.atoms[k].ends &&
			!f.atoms[i].space {
			if wide+f.atoms[k].width > room {
				break
			}
			wide += f.atoms[k].width
			k++
		}
		if f.atoms[i].ends || used+wide > room && !f.atoms[i].space {
			end()
			used = 0
		}
		if len(line) > 0 || !f.atoms[i].space {
			line = append(line, f.atoms[i:k]...)
			used += wide
		}
		i = k
	}
	end()
	return lines
}

// The directions of characters.
const (
	neutral = iota
	toRight
	toLeft
	number
)

// runsTo returns the direction of a character.
func runsTo(r rune) int {
	p, _ := bidi.LookupRune(r)
	switch p.Class() {
	case bidi.L:
		return toRight
	case bidi.R, bidi.AL:
		return toLeft
	case bidi.EN, bidi.AN:
		return number
	}
	return neutral
}

// directions divides a text into parts of one direction. A text without letters from right to left is one.
func directions(text string) (parts []string) {
	if !strings.ContainsFunc(text, func(r rune) bool { return runsTo(r) == toLeft }) {
		return []string{text}
	}
	last := -1
	for _, c := range spans.Clusters(text) {
		d := runsTo([]rune(c)[0])
		if d == last && len(parts) > 0 {
			parts[len(parts)-1] += c
		} else {
			parts = append(parts, c)
		}
		last = d
	}
	return parts
}

// strong returns the direction of a text: that of its first letter or, if it has none, of its first digit.
func strong(text string) int {
	found := neutral
	for _, r := range text {
		switch d := runsTo(r); {
		case d == toRight || d == toLeft:
			return d
		case d == number:
			found = number
		}
	}
	return found
}

// base returns the level of a text: 1 if its first letter is of a script from right to left.
func base(list []spans.Span) int {
	for _, s := range list {
		if s.Kind == spans.Spelled || s.Kind == spans.Special {
			continue
		}
		switch strong(s.Text) {
		case toRight:
			return 0
		case toLeft:
			return 1
		}
	}
	return 0
}

// setLevels gives atoms their levels in a text of a level. What has no direction has that of its neighbours
// if these agree, and otherwise that of the text; numbers run to the right in either.
func setLevels(atoms []atom, whole int) {
	kinds := make([]int, len(atoms))
	for i, a := range atoms {
		kinds[i] = strong(a.text)
	}
	if !slices.Contains(kinds, toLeft) && whole == 0 {
		return
	}
	joinNumbers(atoms, kinds)
	before := []int{toRight, toLeft}[whole]
	for i, k := range kinds {
		switch k {
		case toRight:
			atoms[i].level = 2 * whole
		case toLeft:
			atoms[i].level = 1
		case number:
			if before == toLeft || whole == 1 {
				atoms[i].level = 2
			}
		}
		if k == toRight || k == toLeft {
			before = k
		}
	}
	setNeutral(atoms, kinds, whole)
}

// setNeutral gives the atoms that have no direction their levels.
func setNeutral(atoms []atom, kinds []int, whole int) {
	side := func(k int) int { // as a neighbour sees it
		if k < 0 || k >= len(atoms) {
			return []int{toRight, toLeft}[whole]
		}
		if kinds[k] == number {
			return []int{toRight, toLeft, toLeft}[atoms[k].level]
		}
		return kinds[k]
	}
	for i := 0; i < len(atoms); {
		k := i
		for k < len(atoms) && kinds[k] == neutral {
			k++
		}
		level := whole
		if side(i-1) == side(k) {
			level = 1
			if side(k) == toRight {
				level = 2 * whole
			}
		}
		for ; i < k; i++ {
			atoms[i].level = level
		}
		i++
	}
}

// joinNumbers makes signs parts of the numbers that they belong to, by rules W2, W4 and W5 of Unicode's annex
// 9: a comma between digits, and a percent sign next to them unless they follow Arabic letters.
func joinNumbers(atoms []atom, kinds []int) {
	arabic, after := make([]bool, len(atoms)), false
	for i, a := range atoms {
		if kinds[i] == toRight || kinds[i] == toLeft {
			after = hasClass(a.text, bidi.AL)
		}
		arabic[i] = after
	}
	for i := 1; i+1 < len(atoms); i++ {
		if kinds[i] == neutral && kinds[i-1] == number && kinds[i+1] == number &&
			len([]rune(atoms[i].text)) == 1 &&
			(hasClass(atoms[i].text, bidi.CS) || hasClass(atoms[i].text, bidi.ES) && !arabic[i]) {
			kinds[i] = number
		}
	}
	join := func(i, neighbour int) {
		if kinds[i] == neutral && kinds[neighbour] == number && !arabic[i] && hasClass(atoms[i].text,
			bidi.ET) {
			kinds[i] = number
		}
	}
	for i := 1; i < len(atoms); i++ {
		join(i, i-1)
	}
	for i := len(atoms) - 2; i >= 0; i-- {
		join(i, i+1)
	}
}

// hasClass reports whether the first character of a text that isn't neutral, or else its first one, has a
// class of direction.
func hasClass(text string, class bidi.Class) bool {
	first := true
	for _, r := range text {
		p, _ := bidi.LookupRune(r)
		if first && p.Class() == class {
			return true
		}
		if first = false; runsTo(r) != neutral {
			return p.Class() == class
		}
	}
	return false
}

// leftToRight returns a line in the order in which it is seen, by rule L2 of Unicode's annex 9.
func leftToRight(line []atom) []atom {
	line = slices.Clone(line)
	highest := 0
	for _, a := range line {
		highest = max(highest, a.level)
	}
	for level := highest; level > 0; level-- {
		for i := 0; i < len(line); i++ {
			k := i
			for k < len(line) && line[k].level >= level {
				k++
			}
			slices.Reverse(line[i:k])
			i = k
		}
	}
	return line
}

// joiners returns a piece of a word between two others, so that Arabic letters at its ends have the forms
// that they have in the word: an invisible joiner takes the neighbour's place.
func joiners(before, text, after string) string {
	first, last := []rune(before), []rune(after)
	inner := []rune(text)
	if len(inner) == 0 {
		return text
	}
	if n := len(first); n > 0 && joinsLeft(first[n-1]) && isArabicLetter(inner[0]) {
		text = "\u200d" + text
	}
	if len(last) > 0 && isArabicLetter(last[0]) && joinsLeft(inner[len(inner)-1]) {
		text += "\u200d"
	}
	return text
}

func isArabicLetter(r rune) bool { return unicode.Is(unicode.Arabic, r) && unicode.IsLetter(r) }

// joinsLeft reports whether a letter of Arabic script joins the one after it.
func joinsLeft(r rune) bool {
	return isArabicLetter(r) && !strings.ContainsRune("آأؤإاةدذرزوىءٱڈڑژۀےۓ", r)
}
