package publish

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A passage is a text in README.md, between two comments that name its cell and its
// port.
type passage struct {
	cell, port string
	stage      string
	body       string
	old        bool // of an earlier run
}

const passageEnd = "<!-- end of text -->"

var passageStart = regexp.MustCompile(`^<!-- text (\S+) (\S+)(?: [0-9a-f]{16})? -->$`) // older ones have a definition

func (p *passage) String() string {
	return "<!-- text " + p.cell + " " + p.port + " -->\n" + p.body + "\n" + passageEnd + "\n"
}

// readPassages reads the texts in a README.md.
func readPassages(b []byte) []passage {
	var out []passage
	var open *passage
	var body []string
	for text := range strings.Lines(string(b)) {
		text = strings.TrimRight(text, "\r\n")
		if f := passageStart.FindStringSubmatch(text); f != nil {
			stage, _, _ := strings.Cut(f[1], "[")
			open, body = &passage{cell: f[1], port: f[2], stage: stage}, nil
		} else if open != nil && text == passageEnd {
			open.body = strings.Join(body, "\n")
			if !hasConflict(body) && !slices.Contains(out, *open) {
				out = append(out, *open)
			}
			open = nil
		} else if open != nil {
			body = append(body, text)
		}
	}
	return out
}

// hasConflict reports whether lines contain git's conflict markers.
func hasConflict(lines []string) bool {
	return slices.ContainsFunc(lines, func(s string) bool {
		return strings.HasPrefix(s, "<<<<<<< ") || strings.HasPrefix(s, ">>>>>>> ") || s == "======="
	})
}

// mergeTexts decides the texts of README.md.
func (m *merge) mergeTexts() {
	const file = "README.md"
	disk := map[string][]passage{} // by cell and port
	for _, p := range readPassages(m.disk[file]) {
		disk[p.cell+" "+p.port] = append(disk[p.cell+" "+p.port], p)
	}
	finished := map[string]bool{}
	for _, c := range m.cells {
		if c.State != Done {
			continue
		}
		finished[c.Name] = true
		for _, t := range c.Texts {
			now := passage{cell: c.Name, port: t.Port, stage: c.Stage, body: tidy(t.Markdown)}
			key := c.Name + " " + t.Port
			m.texts = append(m.texts, m.mergeText(file, c, now, disk[key]))
			delete(disk, key)
		}
	}
	for _, ps := range disk {
		for _, p := range ps {
			if m.partial && !finished[p.cell] {
				p.old = true
				m.texts = append(m.texts, p)
				m.tally.add(kept, Row{File: file, Cell: p.cell})
			} else {
				m.tally.add(removed, Row{File: file, Cell: p.cell})
			}
		}
	}
	slices.SortStableFunc(m.texts, func(a, b passage) int {
		return cmp.Or(m.compareShown(a.cell, b.cell), cmp.Compare(a.port, b.port), cmp.Compare(a.body, b.body))
	})
}

func (m *merge) mergeText(file string, c *Cell, now passage, disk []passage) passage {
	var claim *passage
	holds := false
	for i := range disk {
		p := &disk[i]
		if !holds {
			if _, ok := alike(textNumber, []byte(p.body), []byte(now.body), lastDigit); ok || claim == nil {
				claim, holds = p, ok
			}
		}
	}
	switch standing := m.standing(c); {
	case claim == nil || standing == unclaimed || standing == contested && !holds:
		m.tally.add(addedOr(rewritten, claim != nil), Row{File: file, Cell: c.Name})
		return now
	case holds:
		m.tally.counts.Texts++
	default:
		m.tally.add(differs, Row{File: file, Cell: c.Name, Column: "text", Old: excerpt(claim.body), New: excerpt(now.body), Deviation: math.Inf(1)})
	}
	return *claim
}

// tidy makes a text one that readPassages reads back.
func tidy(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	s = strings.ReplaceAll(s, "<!--", "&lt;!--")
	var lines []string
	for line := range strings.Lines(s) {
		line = strings.TrimRight(line, " \t\r\n")
		if hasConflict([]string{line}) {
			line = "\\" + line
		}
		lines = append(lines, line)
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// excerpt returns the beginning of a text, quoted.
func excerpt(s string) string {
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) > 40 {
		return strconv.Quote(string(r[:40]) + "…")
	}
	return strconv.Quote(string(r))
}

// Numbers that may be off: in a text those with digits after the point, since
// whole numbers count something; in an SVG all of them but colours.
var (
	textNumber = regexp.MustCompile(`[-+]?[0-9]*\.[0-9]+(?:[eE][-+]?[0-9]+)?`)
	svgNumber  = regexp.MustCompile(`#[0-9a-fA-F]{3,8}\b|[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?`)
)

// alike reports whether two texts are equal but for what word matches, and that
// as numbers within a tolerance that may depend on how they're written.
func alike(word *regexp.Regexp, a, b []byte, tolerance func(a, b string) float64) (deviation float64, ok bool) {
	x, y := word.FindAllIndex(a, -1), word.FindAllIndex(b, -1)
	if len(x) != len(y) {
		return math.Inf(1), false
	}
	i, j := 0, 0
	for k := range x {
		if string(a[i:x[k][0]]) != string(b[j:y[k][0]]) {
			return math.Inf(1), false
		}
		s, t := string(a[x[k][0]:x[k][1]]), string(b[y[k][0]:y[k][1]])
		i, j = x[k][1], y[k][1]
		if s == t {
			continue
		}
		u, err1 := strconv.ParseFloat(s, 64)
		v, err2 := strconv.ParseFloat(t, 64)
		if err1 != nil || err2 != nil {
			return math.Inf(1), false
		}
		d := math.Abs(u - v)
		if !(d <= tolerance(s, t)*(1+1e-9)) {
			return d, false
		}
		deviation = max(deviation, d)
	}
	return deviation, string(a[i:]) == string(b[j:])
}

// lastDigit returns one unit of the last digit of the coarser of two numbers:
// what rounding may do to numbers that are next to each other.
func lastDigit(a, b string) float64 { return max(unit(a), unit(b)) }

func unit(s string) float64 {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	_, decimals, _ := strings.Cut(mantissa, ".")
	e, _ := strconv.Atoi(exponent) // 0 without one
	return math.Pow10(e - len(decimals))
}
