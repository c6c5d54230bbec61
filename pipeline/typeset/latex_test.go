package typeset

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

func paperTable() stages.Table {
	nan, inf := stages.Number(math.NaN()), stages.Number(math.Inf(1))
	return stages.Table{
		Title: "ρ of 2 domains & 3 methods\n\\input{x}",
		Keys:  []string{"domain", "method"},
		Numbers: []stages.Column{
			{Name: "rise vgg", Direction: stages.Higher, Tolerance: 5e-3, Digits: 4},
			{Name: "rise vgg not confirmed", Marks: "rise vgg", Unit: "can't be told apart"},
			{Name: "rise vgg low", Tolerance: 5e-3, Digits: 4},
			{Name: "rise vgg high", Tolerance: 5e-3, Digits: 4},
			{Name: "rise vit", Variant: "official", Direction: stages.Lower, Digits: 2},
			{Name: "mean_rank", Direction: stages.Lower, Digits: 2},
			{Name: "n", Unit: "images"},
		},
		Rows: []stages.Row{
			{Keys: []string{"a", "ig"}, Numbers: []stages.Number{0.71234, 1, 0.7, 0.75, 3, 1, 24}},
			{Keys: []string{"a", "[lrp]"}, Numbers: []stages.Number{0.5, 0, 0.4, 0.6, 2, 2, 24}},
			{Keys: []string{"a", "50% & more_$1"}, Numbers: []stages.Number{nan, 0, nan, nan, inf, 2, 0}},
			{Keys: []string{"b", "ig"}, Numbers: []stages.Number{-0.25, 1, -0.3, -0.25, 1, 1, 24}},
			{Keys: []string{"b", "[lrp]"}, Numbers: []stages.Number{-0.2501, 1, -0.3, -0.2, 1, 1, 24}},
			{Keys: []string{"b", "*x {y} \\z"}, Numbers: []stages.Number{-0.4, 0, -0.5, -0.3, 4, 1.5, 24}},
		},
	}
}

const paperLaTeX = `% Made by runexp. Needs \usepackage{booktabs}.
% ρ of 2 domains & 3 methods \input{x}
% Bold: the best of a column. Underlined: the second.
% Superscript and subscript: from the number to the ends of its 95 % interval over images.
% Asterisk: can't be told apart.
\begin{tabular}{llrrrr}
\toprule
 &  & \multicolumn{2}{c}{rise} &  &  \\
\cmidrule(lr){3-4}
domain & method & vgg $\uparrow$ & vit (official) $\downarrow$ & mean\_rank $\downarrow$ & n \\
\midrule
a & ig & $\mathbf{0.712}^{+0.038}_{-0.012}$\rlap{\textsuperscript{*}} & $\underline{3.00}$ & $\mathbf{1.00}$ & $24$ \\[2pt]
a & {[}lrp] & $\underline{0.500}^{+0.100}_{-0.100}$ & $\mathbf{2.00}$ & $\underline{2.00}$ & $24$ \\[2pt]
a & 50\% \& more\_\$1 & -- & $+\infty$ & $\underline{2.00}$ & $0$ \\[2pt]
\addlinespace
b & ig & $\mathbf{-0.250}^{+0.000}_{-0.050}$\rlap{\textsuperscript{*}} & $\mathbf{1.00}$ & $\mathbf{1.00}$ & $24$ \\[2pt]
b & {[}lrp] & $\mathbf{-0.250}^{+0.050}_{-0.050}$\rlap{\textsuperscript{*}} & $\mathbf{1.00}$ & $\mathbf{1.00}$ & $24$ \\[2pt]
b & {*}x \{y\} \textbackslash{}z & $-0.400^{+0.100}_{-0.100}$ & $4.00$ & $1.50$ & $24$ \\[2pt]
\bottomrule
\end{tabular}
`

// TestLaTeX: columns below a shared word, best and second by group, intervals, marks, digits by tolerance,
// undefined and infinite numbers, and texts that would be commands.
func TestLaTeX(t *testing.T) {
	got := LaTeX(paperTable())
	if got != paperLaTeX {
		t.Errorf("got\n%s\nwant\n%s", got, paperLaTeX)
	}
	checkLaTeX(t, got)
	compileLaTeX(t, got)
}

// TestHostileLaTeX: no text of others becomes a command, whatever is in it.
func TestHostileLaTeX(t *testing.T) {
	table := paperTable()
	var all strings.Builder
	var tables []string
	for r := rune(0); r < 0x180; r++ {
		if r != '\n' {
			all.WriteRune(r)
		}
	}
	for i, text := range []string{`\input{/etc/passwd}`, `}\end{tabular}\write18{x}`, "%\n", `\\[9cm]`,
		"a&b&c", all.String(), "^^5cinput", "--- ``", "#1", "$$", "~"} {
		table.Rows[i%6].Keys[i%2], table.Numbers[4].Variant, table.Title = text, text, text
		table.Numbers[0].Name, table.Numbers[1].Marks = "x "+text, "x "+text
		got := LaTeX(table)
		checkLaTeX(t, got)
		tables = append(tables, strings.Map(func(r rune) rune { // letters that pdfLaTeX has no font for
			if r > 0x7f {
				return 'x'
			}
			return r
		}, got))
	}
	compileLaTeX(t, tables...)
}

var latexCommand = regexp.MustCompile(`\\([a-z]+|.)`)

// checkLaTeX checks the syntax of a table: as many fields in a row as columns, braces that close, no command
// but ours.
func checkLaTeX(t *testing.T, text string) {
	t.Helper()
	columns := -1
	known := " begin end toprule midrule bottomrule addlinespace multicolumn cmidrule mathbf underline " +
		"textsuperscript rlap infty uparrow downarrow to times pm le ge cdot dots textbackslash " +
		"textasciitilde textasciicircum textless textgreater textbar textquotedbl textasciigrave " +
		"textquotesingle " +
		"alpha beta gamma delta varepsilon kappa lambda mu rho sigma tau chi \\ { } $ & # % _ "
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "%") {
			continue
		}
		depth, fields, math := 0, 1, false
		bare := latexCommand.ReplaceAllStringFunc(line, func(s string) string {
			if !strings.Contains(known, " "+s[1:]+" ") {
				t.Errorf("unknown command %s in %s", s, line)
			}
			return "x"
		})
		for _, r := range bare {
			switch {
			case r == '{':
				depth++
			case r == '}':
				depth--
			case r == '&':
				fields++
			case r == '$':
				math = !math
			case strings.ContainsRune("#%_^~", r) && !math:
				t.Errorf("%q stands alone in %s", r, line)
			}
			if depth < 0 {
				break
			}
		}
		if depth != 0 || math {
			t.Errorf("braces or dollars don't close: %s", line)
		}
		if rest, ok := strings.CutPrefix(line, `\begin{tabular}{`); ok {
			columns = len(rest) - 1
		} else if strings.HasSuffix(strings.TrimSuffix(line, "[2pt]"), `\\`) && fields != columns &&
			!strings.Contains(line, `\multicolumn`) {
			t.Errorf("%d fields of %d columns: %s", fields, columns, line)
		}
	}
}

// compileLaTeX compiles tables where pdflatex is installed: make test-latex needs it.
func compileLaTeX(t *testing.T, tables ...string) {
	t.Helper()
	text := "\\documentclass{article}\n\\usepackage[T1]{fontenc}\n\\usepackage{booktabs,textcomp}\n" +
		"\\begin{document}\n" + strings.Join(tables, "\n\n") + "\\end{document}\n"
	stagetest.LaTeX(t, map[string][]byte{"t.tex": []byte(text)}, "t.tex")
}

// TestCommittedLaTeX: the tables of the quickstart's review folder are right, and compile.
func TestCommittedLaTeX(t *testing.T) {
	files, err := filepath.Glob("../../artifacts/quickstart/tables/*.tex")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var tables []string
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		checkLaTeX(t, string(b))
		tables = append(tables, string(b))
	}
	compileLaTeX(t, tables...)
}
