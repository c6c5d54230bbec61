package typeset

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// LaTeXMark begins every table in LaTeX.
const LaTeXMark = "% Made by runexp"

// LaTeX returns a table as a tabular in the style of booktabs. Rows that agree in every text except the last
// one form a group. In a column with a direction, the best number of each group is bold and the second
// underlined, compared as displayed. Intervals are superscripts and subscripts, and marked numbers have an
// asterisk. Digits below the column's tolerance aren't displayed. The author writes the caption; comments say
// what it should explain.
func LaTeX(t stages.Table) string { return tableGrid(t).LaTeX(t.Title) }

// resampled says of what intervals are: of the cases where a row counts them, as a fused ranking does, and
// else of the items whose number it has.
func (g *Grid) resampled() string {
	for _, c := range g.columns {
		if c.name == "cases" && c.number != nil {
			return c.number.Unit
		}
	}
	for _, c := range g.columns {
		if c.name == "n" && c.number != nil && c.number.Unit != "" {
			return c.number.Unit
		}
	}
	return stages.CommonItems(nil)
}

func (g *Grid) LaTeX(title string) string {
	var b strings.Builder
	comment := func(s string) { b.WriteString("% " + Plain(s) + "\n") }
	b.WriteString(LaTeXMark + ". Needs \\usepackage{booktabs}.\n")
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
		comment("Superscript and subscript: from the number to the ends of its 95 % interval over " +
			g.resampled() + ".")
	}
	if slices.ContainsFunc(shown, func(k int) bool { return g.columns[k].sd != nil }) {
		comment("Behind \\pm: the standard deviation over seeds.")
	}
	if g.Legend != "" {
		comment("Asterisk: " + g.Legend + ".")
	}
	if g.Bare != "" {
		comment(g.Bare)
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

// latexColumns lists the columns that are displayed. The ends of intervals are displayed with their number.
func (g *Grid) latexColumns() []int {
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

// latexHead writes the names of the columns. A word that the names of neighbours begin with, such as the
// metric of scores on several models, is written once above them.
func (g *Grid) latexHead(b *strings.Builder, shown []int) {
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
		if s.first == s.last { // a name without neighbours isn't split
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
			names[n] += LaTeXText(variantOf(c))
			names[n] += latexArrows[c.Direction]
		}
	}
	b.WriteString(strings.Join(names, " & ") + " \\\\\n")
}

var latexArrows = map[stages.Direction]string{stages.Higher: " $\\uparrow$", stages.Lower: " $\\downarrow$"}

// latexNumber writes a number with its interval and mark, and a dash for an undefined one.
func (g *Grid) latexNumber(row, column int, style string) string {
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
	if c.sd != nil {
		if sd := g.at(row, c.sd[0]); !math.IsNaN(sd) {
			text += " \\pm " + g.columns[c.sd[0]].latexDecimals(sd)
		}
	}
	text = "$" + text + "$"
	if g.marked[row][column] {
		text += "\\rlap{\\textsuperscript{*}}" // so that the digits of a column stay aligned
	}
	return text
}

// signed writes the distance from a number to an end of its interval; a distance of 0 has the sign of that
// end.
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
	return Decimals(Format(x, Digits), c.decimals())
}

// decimals returns how many decimals are displayed: none below the column's tolerance.
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

// group returns the name of a row's group: all its texts except the last one.
func (g *Grid) group(row int) string {
	var texts []string
	for k, c := range g.columns {
		if c.number == nil {
			texts = append(texts, fmt.Sprintf("%q", g.rows[row][k]))
		}
	}
	return strings.Join(texts[:max(len(texts)-1, 0)], " ")
}

// best returns the styles of the best and the second number of each group, by row and column. Numbers that
// are displayed alike tie; after a tie of the best no number is second.
func (g *Grid) best(shown []int) map[[2]int]string {
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
			var values []float64 // distinct, the best first
			of := map[float64][]int{}
			for _, i := range group {
				x, _ := Parse(Decimals(g.rows[i][k], c.decimals()))
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

// LaTeXText escapes a text for a line, or a field of a tabular, in LaTeX: it is displayed as it is.
// Brackets and asterisks are escaped because at the beginning of a row they would be an argument of the
// line break before it. Letters outside Latin and latexEscapes need XeLaTeX or LuaLaTeX.
func LaTeXText(s string) string {
	s = latexEscapes.Replace(Plain(s))
	for strings.Contains(s, "--") { // LaTeX joins two hyphens to a dash
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
