package main

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/runexp/runexp/stages"
)

// numberOf writes a number of things.
func numberOf(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// mostRecommended limits the images of a recommended experiment, unless the user takes all.
const mostRecommended = 500

// report prints the outcome, and writes or prints the experiment.
func (f *recommendFlags) report(t *tournament, model string) error {
	found := t.lines()
	if t.decidedAll() {
		found = append(found, "", "The same rounds on any machine: "+f.repeat(t, model))
	}
	text, err := t.experiment(f, append(found, ""))
	if err != nil {
		return err
	}
	if f.out != "" {
		if err := t.create(t.dir, filepath.Base(f.out), text); err != nil {
			return err
		}
	} else if t.NamesFile != "" && t.Numbering.Names == "" {
		t.u.warn(fmt.Sprintf("the experiment reads %s, with the classes' names, which --out writes next to "+
			"it", t.NamesFile))
	}
	switch {
	case f.json:
		e := t.u.json()
		e.SetIndent("", "  ")
		return e.Encode(t.json(f.repeat(t, model), string(text), f.out))
	case f.out == "":
		_, err := t.u.out.Write(text)
		return err
	}
	fmt.Fprintln(t.u.out, strings.Join(append(found, t.lists()...), "\n"))
	t.u.power(f.out)
	t.u.hint("next: runexp run " + quote(f.out))
	return nil
}

// repeat returns the command that has the same rounds on any machine.
func (f *recommendFlags) repeat(t *tournament, model string) string {
	args := []string{"runexp", "recommend", model, "--images", f.images}
	if f.metric != metricChoices[0].name {
		args = append(args, "--metric", f.metric)
	}
	if f.without != "" {
		args = append(args, "--without", f.without)
	}
	if t.Seed != 1 {
		args = append(args, "--seed", fmt.Sprint(t.Seed))
	}
	look := f.look
	for _, flag := range [][2]string{{"--preset", look.Preset}, {"--size", look.Size},
		{"--input", look.Input}, {"--output", look.Output},
		{"--layout", look.Layout}} {
		if flag[1] != "" {
			args = append(args, flag[:]...)
		}
	}
	return quoted(append(args, "--rounds", t.schedule.String()))
}

// better says which scores are.
func (t *tournament) better() stages.Direction {
	if t.lower {
		return stages.Lower
	}
	return stages.Higher
}

// lines writes the outcome for people.
func (t *tournament) lines() []string {
	out := []string{fmt.Sprintf("Metric: %s, %s; %s is better.", t.metric.Port(), t.metric.what, t.better())}
	out = append(out, t.rounds()...)
	out = append(out, "")
	if t.final == nil {
		out = append(out, t.unconfirmed()...)
	} else {
		out = append(out, t.final.table(t.better())...)
		out = append(out, "")
		if !strings.HasPrefix(t.final.answer, "No answer") {
			out = append(out, wrapped(t.final.verdict())...)
		}
		for paragraph := range strings.SplitSeq(strings.TrimSpace(t.final.answer), "\n\n") {
			out = append(out, wrapped(strings.ReplaceAll(paragraph, "**", ""))...)
		}
		out = append(out, "")
		out = append(out, wrapped(t.scope())...)
	}
	return out
}

// lists names the candidates that aren't finalists, with the reasons.
func (t *tournament) lists() (out []string) {
	if losers := t.losers(); len(losers) > 0 {
		out = append(out, "", "Dropped by the rounds, best first; nothing is claimed of them:")
		for _, d := range losers {
			out = append(out, "  "+d.String())
		}
	}
	out = append(out, listed("Equal to another candidate:", t.twins)...)
	out = append(out, listed("Not tried:", t.untried)...)
	return append(out, listed("Refused by the model:", t.refused)...)
}

// decidedAll reports whether the schedule can be repeated.
func (t *tournament) decidedAll() bool { return t.schedule.decided() && len(t.schedule.Rounds) > 0 }

// rounds describes the schedule.
func (t *tournament) rounds() []string {
	var words []string
	for k, r := range t.schedule.Rounds {
		word := fmt.Sprintf("%s on %s", numberOf(r.Candidates, "candidate"), numberOf(r.Images, "image"))
		if k > 0 {
			word = fmt.Sprintf("%d on %d", r.Candidates, r.Images)
		}
		words = append(words, word)
	}
	if words == nil {
		words = []string{"none ended"}
	}
	text := fmt.Sprintf("Rounds: %s, of one half of the %d images; seed %d.", strings.Join(words, ", "),
		t.Folder.Images, t.Seed)
	if t.final != nil {
		text += fmt.Sprintf(" Confirmation: the finalists on %d of the other half.", t.final.images)
	}
	return wrapped(text)
}

// scope says what the numbers may and may not claim.
func (t *tournament) scope() string {
	text := fmt.Sprintf("The rounds chose by looking at %s: their means claim nothing, and what they "+
		"dropped may be as good. The table and p are of %s that no round had, with %s named as the first "+
		"before them, and one test of each difference from it: of equal methods, at most 5 of 100 "+
		"tournaments confirm one.", numberOf(t.chosenOn(), "image"), numberOf(t.final.images, "image"),
		t.final.first)
	return text
}

// unconfirmed describes a tournament without a confirmation.
func (t *tournament) unconfirmed() []string {
	out := wrapped(fmt.Sprintf("No answer: no time was left for a confirmation. These are the best of the "+
		"rounds' last one, on %s that chose them: their means claim nothing; --time gives more.",
		numberOf(t.chosenOn(), "image")))
	if len(t.schedule.Rounds) == 0 {
		return wrapped("No answer: the time ended before the first round did; --time gives more.")
	}
	for _, s := range finalistsOf(t.standings, finalists) {
		out = append(out, fmt.Sprintf("  %s %.4f", s.id, s.Mean))
	}
	return out
}

// losers are the candidates that rounds have dropped, and those of the last round that aren't finalists, best
// first.
func (t *tournament) losers() []dropped {
	out := []dropped{}
	inFinal := func(id string) bool {
		return t.final != nil && slices.ContainsFunc(t.final.of, func(f finalist) bool { return f.ID == id })
	}
	finalists := finalistsOf(t.standings, finalists)
	for _, s := range t.standings {
		same := func(f standing) bool { return f.id == s.id }
		chosen := t.final == nil && slices.ContainsFunc(finalists, same)
		if s.Images > 0 && !inFinal(s.id) && !chosen {
			out = append(out, dropped{s, len(t.schedule.Rounds)})
		}
	}
	rest := slices.Clone(t.dropped)
	slices.SortStableFunc(rest, func(a, b dropped) int { return b.round - a.round })
	return append(out, rest...)
}

func (d dropped) String() string {
	mean := fmt.Sprintf("%.4f", d.Mean)
	if !d.known() {
		mean = "undefined"
	}
	return fmt.Sprintf("%s: round %d, %s on %s", d.id, d.round, mean, numberOf(d.Images, "image"))
}

// table writes the finalists, best first.
func (f *final) table(d stages.Direction) (lines []string) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	const head = "rank\tcandidate\tmean (%s is better)\t95 %% interval\tlead of %s\tp (Holm)\t\n"
	fmt.Fprintf(w, head, d, f.first)
	for k, c := range f.of {
		fmt.Fprintf(w, "%d\t%s\t%.4f\t%s", k+1, c.ID, c.Mean, span(c.Low, c.High))
		if c.Lead == nil {
			fmt.Fprint(w, "\tfirst of the rounds\t\t\n")
			continue
		}
		confirmed := "not confirmed"
		if c.Confirmed {
			confirmed = "confirmed"
		}
		fmt.Fprintf(w, "\t%.4f %s\t%.2g\t%s\n", *c.Lead, span(*c.LeadLow, *c.LeadHigh), *c.P, confirmed)
	}
	w.Flush()
	for line := range strings.SplitSeq(strings.TrimSpace(b.String()), "\n") {
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines
}

// span writes an interval; a single image has none.
func span(low, high stages.Number) string {
	if low.Undefined() || high.Undefined() {
		return "undefined"
	}
	return fmt.Sprintf("[%.4f, %.4f]", low, high)
}

// listed lists candidates with the reasons why they aren't in the tournament; equal reasons once.
func listed(head string, list []absence) (out []string) {
	var reasons []string
	of := map[string][]string{}
	for _, a := range list {
		if of[a.Why] == nil {
			reasons = append(reasons, a.Why)
		}
		of[a.Why] = append(of[a.Why], a.ID)
	}
	for _, why := range reasons {
		if out == nil {
			out = []string{"", head}
		}
		for k, line := range wrapped(strings.Join(of[why], ", ") + ": " + why) {
			out = append(out, strings.Repeat(" ", 2+2*min(k, 1))+line)
		}
	}
	return out
}

// wrapped breaks a text into lines.
func wrapped(text string) (lines []string) {
	const width = 100
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// experiment writes the full experiment: the finalists and the baselines, on images on which nothing was
// chosen; the other candidates are comments.
func (t *tournament) experiment(f *recommendFlags, found []string) (text []byte, err error) {
	s := t.starter
	s.File, s.Found, s.Skip = s.Name+".yaml", found, t.chosenOn()
	if f.out != "" {
		s.File, s.Name = f.out, starterName(f.out)
	}
	list := finalistsOf(t.standings, finalists)
	if t.schedule.decided() {
		list = finalistsOf(t.standings, t.schedule.Final.Candidates)
	}
	s.Methods, s.Others = nil, nil
	passes := 0
	for _, id := range baselines {
		s.Methods = append(s.Methods, t.baseline(id).line())
	}
	for _, c := range list {
		s.Methods, passes = append(s.Methods, c.line()), passes+c.cost
	}
	for _, d := range t.losers() {
		s.Others = append(s.Others, fmt.Sprintf("%s  # %s", d.line(), d.String()[len(d.id)+2:]))
	}
	for _, a := range slices.Concat(t.twins, t.untried, t.refused) {
		s.Others = append(s.Others, a.ID+": "+a.Why)
	}
	needed := 0.0
	if t.final != nil {
		needed = t.final.needed
	}
	s.Count = min(s.Folder.Images-s.Skip, max(mostImages, int(math.Min(needed, mostRecommended))))
	s.seconds = s.pass() * float64((passes+len(s.Methods)*2*(s.Steps+1))*s.Count)
	if len(list) > 0 {
		column := t.metric.name
		if column == "insertion" || column == "deletion" {
			s.Column = column + ": " + t.metric.Port()
		}
		s.Claim = list[0].id + " beats * where metric=" + column
	}
	if f.out != "" {
		s.NamesFile, err = s.namesFrom(t.dir)
	} else if s.Numbering != nil && s.Numbering.Listed != nil {
		s.NamesFile = s.Name + ".classes.txt"
	} else if s.Numbering != nil && s.Numbering.Names != "" {
		s.NamesFile, err = seenFrom(t.dir, s.Numbering.Names)
	}
	if err != nil {
		return nil, err
	}
	return s.text()
}

// A recommendation is the outcome for programs.
type recommendation struct {
	Metric     string           `json:"metric"` // the port
	Better     stages.Direction `json:"better"`
	Seed       int              `json:"seed"`
	Images     int              `json:"images"` // of the folder: the rounds have one half, the confirmation the other
	Schedule   schedule         `json:"schedule"`
	Confirmed  bool             `json:"confirmed"` // some difference from the first of the rounds
	Ranking    []finalist       `json:"ranking"`   // of the confirmation; empty without one
	Answer     string           `json:"answer"`
	Dropped    []loser          `json:"dropped"` // by the rounds, best first
	Equal      []absence        `json:"equal"`   // to another candidate, on all images of a round
	Untried    []absence        `json:"untried"`
	Refused    []absence        `json:"refused"`
	Seconds    float64          `json:"seconds"`
	Repeat     string           `json:"repeat,omitempty"` // the command with the same rounds
	File       string           `json:"file,omitempty"`
	Experiment string           `json:"experiment"`
}

// A loser is a dropped candidate for programs.
type loser struct {
	ID     string        `json:"id"`
	Uses   string        `json:"uses"`
	With   string        `json:"with,omitempty"`
	Round  int           `json:"round"`
	Images int           `json:"images"`
	Mean   stages.Number `json:"mean"`
}

func (t *tournament) json(repeat, text, file string) recommendation {
	r := recommendation{Metric: t.metric.Port(), Better: t.better(), Seed: t.Seed, Images: t.Folder.Images,
		Schedule: t.schedule, Ranking: []finalist{}, Dropped: []loser{}, Equal: []absence{},
		Untried: []absence{}, Refused: []absence{}, Seconds: t.took.Seconds(), File: file, Experiment: text}
	r.Equal, r.Untried = append(r.Equal, t.twins...), append(r.Untried, t.untried...)
	r.Refused = append(r.Refused, t.refused...)
	if t.decidedAll() {
		r.Repeat = repeat
	}
	if t.final == nil {
		r.Answer = strings.Join(t.unconfirmed(), "\n")
	} else {
		r.Ranking = t.final.of
		r.Answer = t.final.verdict() + "\n" + strings.TrimSpace(t.final.answer)
		r.Confirmed = slices.ContainsFunc(r.Ranking, func(f finalist) bool { return f.Confirmed })
	}
	for _, d := range t.losers() {
		r.Dropped = append(r.Dropped, loser{d.id, "attribute/" + d.method, d.with, d.round, d.Images,
			stages.Number(d.Mean)})
	}
	return r
}
