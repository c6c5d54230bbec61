package publish

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// latexRenderer writes tables/*.tex: a tabular of each table that fits a page.
var latexRenderer = renderer{
	name:  "latex",
	files: []pattern{{"tables/*.tex", unionAttributes}},
	render: func(f *Folder, add func(name string, b []byte)) {
		for _, s := range f.Sheets {
			if name := s.latexFile(); name != "" {
				add(name, []byte(f.gridOf(s, latexRows).latex(s.title())))
			}
		}
	},
	read: func(_ *disk, _ string, b []byte) bool { return bytes.HasPrefix(b, []byte(latexMark)) },
}

// latexRows is how many rows a page has room for.
const latexRows = 60

// latexFile names the file of a table as LaTeX, "" if it doesn't fit a page.
func (s *Sheet) latexFile() string {
	if len(s.Rows) > latexRows {
		return ""
	}
	return strings.TrimSuffix(s.File, ".csv") + ".tex"
}

// latexMark begins a file of LaTeX.
const latexMark = "% Made by runexp"

// LaTeX returns a tabular in the form of booktabs. Of the numbers of a column with a direction that stand in
// rows with the same texts but for the last one, the best is bold and the second underlined, as displayed.
// Intervals are superscripts and subscripts, marked numbers have an asterisk, and no digit is displayed that
// another machine needn't reproduce. Captions are the author's business: what they should explain stands in
// comments.
func LaTeX(t stages.Table) string { return tableGrid(t).latex(t.Title) }

func (g *grid) latex(title string) string {
	var b strings.Builder
	comment := func(s string) { b.WriteString("% " + plain(s) + "\n") }
	b.WriteString(latexMark + ". Needs \\usepackage{booktabs}.\n")
	if title != "" {
		comment(title)
	}
	shown := g.latexColumns()
	best := g.best(shown)
	if slices.ContainsFunc(shown, func(k int) bool { return g.columns[k].directed() }) {
		comment("Bold: the best of a column. Underlined: the second.")
	}
	end := `\\`
	if slices.ContainsFunc(shown, func(k int) bool { return g.columns[k].ends != nil }) {
		end = `\\[2pt]` // intervals are as high as the line
		comment("Superscript and subscript: from the number to the ends of its 95 % interval over images.")
	}
	if g.legend != "" {
		comment("Asterisk: " + g.legend + ".")
	}
	align := ""
	for _, k := range shown {
		if g.columns[k].number == nil {
			align += "l"
		} else {
			align += "r"
		}
	}
	b.WriteString("\\begin{tabular}{" + align + "}\n\\toprule\n")
	g.latexHead(&b, shown)
	b.WriteString("\\midrule\n")
	for i := range g.rows {
		if i > 0 && g.group(i) != g.group(i-1) {
			b.WriteString("\\addlinespace\n")
		}
		for n, k := range shown {
			if n > 0 {
				b.WriteString(" & ")
			}
			if g.columns[k].number == nil {
				b.WriteString(LaTeXText(g.rows[i][k]))
			} else {
				b.WriteString(g.latexNumber(i, k, best[[2]int{i, k}]))
			}
		}
		b.WriteString(" " + end + "\n")
	}
	b.WriteString("\\bottomrule\n\\end{tabular}\n")
	return b.String()
}

// latexColumns lists the columns that stand alone: all but the ends of intervals.
func (g *grid) latexColumns() []int {
	var shown []int
	for k, c := range g.columns {
		if !c.end {
			shown = append(shown, k)
		}
	}
	return shown
}

// labelBreak separates the labels of several ids.
const labelBreak = " · "

// latexHead writes the names of the columns. Neighbours whose names begin with the same word, such as scores
// of one metric on several models, stand below that word.
func (g *grid) latexHead(b *strings.Builder, shown []int) {
	type span struct {
		word        string
		first, last int
	}
	var spans []span
	rest := make([]string, len(shown))
	for n, k := range shown {
		c, between := g.columns[k], " "
		if c.label != c.name {
			between = labelBreak // the words of a label belong together
		}
		word, tail, two := strings.Cut(c.label, between)
		if rest[n] = tail; !two || c.number == nil {
			word, rest[n] = "", c.label
		}
		if end := len(spans) - 1; end >= 0 && word != "" && spans[end].word == word {
			spans[end].last = n
		} else {
			spans = append(spans, span{word, n, n})
		}
	}
	var over, rules []string
	for _, s := range spans {
		if s.first == s.last { // its name stays whole
			over, rest[s.first] = append(over, ""), g.columns[shown[s.first]].label
			continue
		}
		over = append(over, fmt.Sprintf("\\multicolumn{%d}{c}{%s}", s.last-s.first+1, LaTeXText(s.word)))
		rules = append(rules, fmt.Sprintf("\\cmidrule(lr){%d-%d}", s.first+1, s.last+1))
	}
	if rules != nil {
		b.WriteString(strings.Join(over, " & ") + " \\\\\n" + strings.Join(rules, " ") + "\n")
	}
	names := make([]string, len(shown))
	for n, k := range shown {
		names[n] = LaTeXText(rest[n])
		if c := g.columns[k].number; c != nil {
			if c.Variant != "" {
				names[n] += " (" + LaTeXText(c.Variant) + ")"
			}
			names[n] += latexArrows[c.Direction]
		}
	}
	b.WriteString(strings.Join(names, " & ") + " \\\\\n")
}

var latexArrows = map[stages.Direction]string{stages.Higher: " $\\uparrow$", stages.Lower: " $\\downarrow$"}

// latexNumber writes a number: nothing but a dash where it's undefined.
func (g *grid) latexNumber(row, column int, style string) string {
	c, x := g.columns[column], g.at(row, column)
	if math.IsNaN(x) {
		return "--"
	}
	text := c.latexDecimals(x)
	if style != "" {
		text = style + "{" + text + "}"
	}
	if c.ends != nil {
		low, high := g.at(row, c.ends[0]), g.at(row, c.ends[1])
		if !math.IsNaN(low) && !math.IsNaN(high) {
			text += "^{" + c.signed("+", high-x) + "}_{" + c.signed("-", low-x) + "}"
		}
	}
	text = "$" + text + "$"
	if g.marked[row][column] {
		text += "\\rlap{\\textsuperscript{*}}" // so that numbers below each other stay so
	}
	return text
}

// signed writes the distance to an end of an interval, 0 with the sign of that end.
func (c gridColumn) signed(end string, x float64) string {
	text := c.latexDecimals(x)
	if strings.HasPrefix(text, "-") {
		return text
	} else if strings.Trim(text, "0.") == "" {
		return end + text
	}
	return "+" + text
}

func (c gridColumn) latexDecimals(x float64) string {
	if math.IsInf(x, 0) {
		return strings.TrimSuffix(fmt.Sprintf("%g", x), "Inf") + "\\infty"
	}
	return decimals(format(x, digits), c.decimals())
}

// decimals is the number of decimals to display in a paper: those that the column's tolerance leaves.
func (c gridColumn) decimals() int {
	n := c.number
	if n.Tolerance <= 0 {
		return n.Digits
	}
	return min(n.Digits, max(0, int(math.Ceil(-math.Log10(n.Tolerance)-1e-9))))
}

func (c gridColumn) directed() bool {
	return c.number != nil && latexArrows[c.number.Direction] != ""
}

// group joins the texts of a row but for the last: what is compared stands in rows of one group.
func (g *grid) group(row int) string {
	var texts []string
	for k, c := range g.columns {
		if c.number == nil {
			texts = append(texts, fmt.Sprintf("%q", g.rows[row][k]))
		}
	}
	return strings.Join(texts[:max(len(texts)-1, 0)], " ")
}

// best returns the styles of the best and the second number of each group, by row and column. Equals as
// displayed share the first place, and then nothing is second.
func (g *grid) best(shown []int) map[[2]int]string {
	rows := map[string][]int{}
	for i := range g.rows {
		rows[g.group(i)] = append(rows[g.group(i)], i)
	}
	styles := map[[2]int]string{}
	for _, k := range shown {
		c := g.columns[k]
		if !c.directed() {
			continue
		}
		for _, group := range rows {
			var values []float64 // distinct ones, best first
			of := map[float64][]int{}
			for _, i := range group {
				x, _ := parse(decimals(g.rows[i][k], c.decimals()))
				if math.IsNaN(x) {
					continue
				}
				if of[x] == nil {
					values = append(values, x)
				}
				of[x] = append(of[x], i)
			}
			slices.Sort(values)
			if c.number.Direction == stages.Higher {
				slices.Reverse(values)
			}
			if len(values) < 2 {
				continue
			}
			for _, i := range of[values[0]] {
				styles[[2]int{i, k}] = "\\mathbf"
			}
			if len(of[values[0]]) == 1 {
				for _, i := range of[values[1]] {
					styles[[2]int{i, k}] = "\\underline"
				}
			}
		}
	}
	return styles
}

// LaTeXText makes a text one of LaTeX, in a tabular's field too, which shows it as it is, in a line. A
// bracket or an asterisk at the beginning of a row would be the argument of the line break before it. Letters
// beyond these need XeLaTeX or LuaLaTeX.
func LaTeXText(s string) string {
	s = latexEscapes.Replace(plain(s))
	for strings.Contains(s, "--") { // a dash
		s = strings.ReplaceAll(s, "--", "-{}-")
	}
	return s
}

var latexEscapes = strings.NewReplacer(
	`\`, `\textbackslash{}`, `{`, `\{`, `}`, `\}`, `$`, `\$`, `&`, `\&`, `#`, `\#`, `%`, `\%`, `_`, `\_`,
	`~`, `\textasciitilde{}`, `^`, `\textasciicircum{}`, `<`, `\textless{}`, `>`, `\textgreater{}`,
	`|`, `\textbar{}`, `"`, `\textquotedbl{}`, "`", `\textasciigrave{}`, `'`, `\textquotesingle{}`,
	`[`, `{[}`, `*`, `{*}`,
	`α`, `$\alpha$`, `β`, `$\beta$`, `γ`, `$\gamma$`, `δ`, `$\delta$`, `ε`, `$\varepsilon$`, `κ`, `$\kappa$`,
	`λ`, `$\lambda$`, `μ`, `$\mu$`, `ρ`, `$\rho$`, `σ`, `$\sigma$`, `τ`, `$\tau$`, `χ`, `$\chi$`,
	`²`, `$^2$`, `±`, `$\pm$`, `×`, `$\times$`, `≤`, `$\le$`, `≥`, `$\ge$`, `−`, `$-$`, `…`, `\dots{}`,
	`↑`, `$\uparrow$`, `↓`, `$\downarrow$`, `→`, `$\to$`, `·`, `$\cdot$`,
)
