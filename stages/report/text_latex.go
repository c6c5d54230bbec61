package report

import (
	"fmt"
	"image/color"
	"strings"

	"github.com/runexp/runexp/stages/internal/chart"
	"github.com/runexp/runexp/stages/spans"
)

// latexHead begins the file, with the caption.
const latexHead = `%% Made by runexp. Needs \usepackage{xcolor}; letters beyond Latin need XeLaTeX or LuaLaTeX,
%% and texts from right to left babel with bidi=basic.
%% %s
\providecommand{\tokenbox}[2]{{\setlength{\fboxsep}{1pt}\colorbox[HTML]{#1}{\strut #2}}}
{\sloppy\setlength{\parindent}{0pt}
`

// latex returns the figure in LaTeX: a paragraph for each map, whose tokens are boxes of colour.
func (s *textPage) latex(caption string) string {
	var b strings.Builder
	fmt.Fprintf(&b, latexHead, strings.Join(strings.Fields(caption), " "))
	for _, block := range s.blocks {
		if len(block.notes) > 0 {
			b.WriteString("\\textbf{" + latexText(block.notes[0]) + "}")
			for _, note := range block.notes[1:] {
				b.WriteString("\\quad " + latexText(note))
			}
			b.WriteString("\\par\n")
		}
		for _, t := range block.tiles {
			if t == nil {
				continue
			}
			head := strings.TrimSpace(s.names[t.column] + " " + endsOfText(t.scale))
			b.WriteString("\\textit{" + latexText(head) + "}\\quad ")
			s.latexWords(&b, block, t)
			b.WriteString("\\par\n")
		}
		b.WriteString("\\medskip\n")
	}
	b.WriteString("}\n")
	return b.String()
}

// latexWords writes the words of a text in their order, as many as the figure shows.
func (s *textPage) latexWords(b *strings.Builder, block *textBlock, t *tile) {
	shown := map[int]bool{}
	for _, line := range block.flow.lines {
		for _, a := range line {
			shown[a.span] = true
		}
	}
	const perLine = 12 // boxes of the file
	n := 0
	for i, span := range block.spans {
		if !shown[i] && strings.TrimSpace(span.Text) != "" {
			continue
		}
		ground, ink, coloured := s.ground(block, t, i)
		text := span.Text
		if span.Kind == spans.Between || span.Kind == spans.Beyond {
			text = oneSpace(text)
		}
		text = latexText(spans.Visible(text))
		if block.marked[i] {
			text = "\\underline{" + text + "}"
		}
		if ink == chart.White {
			text = "\\textcolor{white}{" + text + "}"
		}
		if span.Tokens == nil {
			if strings.TrimSpace(span.Text) == "" {
				if text = " "; n >= perLine {
					text, n = "\n", 0
				}
			}
			b.WriteString(text)
			continue
		}
		if !coloured {
			ground = chart.White
		}
		b.WriteString("\\tokenbox{" + hex(ground) + "}{" + text + "}")
		if s.Values {
			b.WriteString("$_{\\mathrm{" + latexText(valueText(t.values[i])) + "}}$")
		}
		if i+1 < len(block.spans) && breaksBetween(span.Text, block.spans[i+1].Text) {
			b.WriteString("\\allowbreak{}")
		}
		n++
	}
}

func hex(c color.RGBA) string { return fmt.Sprintf("%02X%02X%02X", c.R, c.G, c.B) }

// latexSpecial has the characters that mean something else to LaTeX, and those that join others.
var latexSpecial = strings.NewReplacer(`\`, `\textbackslash{}`, "{", `\{`, "}", `\}`, "$", `\$`, "&", `\&`,
	"#", `\#`, "_", `\_`, "%", `\%`, "~", `\textasciitilde{}`, "^", `\textasciicircum{}`, "<", `\textless{}`,
	">", `\textgreater{}`, "|", `\textbar{}`, `"`, `{\char34}`, "`", `\textasciigrave{}`, "-", `-{}`,
	",", `,{}`, "[", "{[}", "*", "{*}", "−", `\ensuremath{-}`, "±", `\ensuremath{\pm}`, "…", `\dots{}`)

// latexText returns a text as LaTeX.
func latexText(text string) string { return latexSpecial.Replace(oneSpace(text)) }

// oneSpace replaces control characters by spaces.
func oneSpace(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}
