package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/internal/program"
)

// A Labelled is a photograph with a class.
type Labelled struct {
	Group  int     // its class in the data set, from 0
	Labels []int64 // its class in the model, by each hypothesis of the numbering

	// Image reads the photograph at a size.
	Image func(size picture.Size) ([]byte, error)
}

// A Question is about the feeding of a model and the numbering of its classes, answered by its predictions.
type Question struct {
	Feeds      []Feed
	Numberings []float64 // prior probabilities, which with Other add up to 1
	Other      float64   // prior probability that no numbering is right
	Passes     int       // forward passes that the question may take

	// Progress, if set, is called after every batch, with the passes done and the largest possible number.
	Progress func(done, total int)
}

// A Hypothesis is a way to feed a model and to number its classes, with the evidence for it.
type Hypothesis struct {
	Feed, Numbering int // indices in the question
	Likelihood
	Behind    float64 // how much less evidence it has than the likeliest one, in nats
	Posterior float64
}

// A Verdict is the answer to a question.
type Verdict struct {
	Hypotheses []Hypothesis // the most probable first
	Other      float64      // the posterior probability that no numbering is right
	Images     int          // the largest number of images on which a hypothesis was measured
	Groups     int          // number of their classes
	PerClass   [][2]int     // by group: images on which the most probable hypothesis is right, and all images
	Unreadable int          // photographs that can't be read
	Unread     error        // the error of the first of them
	NaN        []int        // feeds with which the model answers NaN to some image

	others []float64 // by feed: how much less evidence the best untried numbering has
}

const (
	// doubt is the posterior probability from which on a hypothesis leaves a doubt.
	doubt = 0.05
	// leastRight is the number of photographs that must be classified correctly: one or two may be chance.
	leastRight = 3
	// toldApart is the lead, in nats, from which on images distinguish two hypotheses.
	toldApart = 5.0
	// hopeless is the lead from which on a feed isn't measured any more.
	hopeless = 12.0
	// firstRound is the number of photographs on which every feed is measured.
	firstRound = 12
	// eachRead is the number of photographs that are read at once.
	eachRead = 32
)

// Best returns the most probable hypothesis; false if another numbering of the classes is about as
// probable, or if the hypothesis isn't clearly better than chance.
func (v *Verdict) Best() (Hypothesis, bool) {
	if len(v.Hypotheses) == 0 {
		return Hypothesis{}, false
	}
	best := v.Hypotheses[0]
	return best, v.Other < doubt && best.Gain > -math.Log(doubt) && best.Right >= leastRight
}

// Rivals returns the hypotheses that images don't distinguish from the best one: those that leave a doubt,
// and those that are unlikely only by their prior.
func (v *Verdict) Rivals() (doubtful, unlikely []Hypothesis) {
	for _, h := range v.Hypotheses[min(1, len(v.Hypotheses)):] {
		switch {
		case h.Posterior >= doubt:
			doubtful = append(doubtful, h)
		case h.Behind-v.Hypotheses[0].Behind < toldApart:
			unlikely = append(unlikely, h)
		}
	}
	return doubtful, unlikely
}

// Weigh answers a question by photographs, which come in such an order that the first ones have many
// classes. Feeds that are hopeless after some photographs aren't measured further.
func (t *Trial) Weigh(ctx context.Context, q Question, photos []Labelled) (Verdict, error) {
	s, err := t.answering()
	if err != nil {
		return Verdict{}, err
	}
	defer s.close()
	w := &weighing{Question: q, answering: s, most: min(q.Passes, len(photos)*len(q.Feeds)),
		evidence: &Evidence{Classes: t.Spec.Classes, Numberings: make([][]int64, len(q.Numberings))}}
	w.begin()
	for next := 0; next < len(photos) && len(w.alive) > 0; {
		round := w.round()
		if round <= 0 {
			break
		}
		for last := min(len(photos), next+round); next < last; {
			some := photos[next:min(last, next+max(s.batch, eachRead))]
			next += len(some)
			if err := w.measure(ctx, some); err != nil {
				return Verdict{}, err
			}
		}
		w.dropHopeless()
	}
	if q.Progress != nil { // fewer passes than possible
		q.Progress(w.done, w.done)
	}
	e := w.evidence
	if len(e.Groups) == 0 {
		return Verdict{}, fmt.Errorf("none of %d photographs with a class can be read; the first: %w",
			w.unreadable, cmp.Or(w.unread, errors.New("there is none")))
	}
	v := e.verdict(q)
	v.Unreadable, v.Unread = w.unreadable, w.unread
	for f, fed := range e.fed {
		if fed.broken {
			v.NaN = append(v.NaN, f)
		}
	}
	return v, nil
}

// A weighing is a question and the evidence so far.
type weighing struct {
	Question
	*answering
	evidence   *Evidence
	alive      []int // the feeds that aren't hopeless
	done, most int   // passes, and the largest possible number
	unreadable int   // photographs
	unread     error // the error of the first of them
}

// begin makes all feeds alive, with feeds of one graph next to each other.
func (w *weighing) begin() {
	w.alive = make([]int, len(w.Feeds))
	for i := range w.alive {
		w.alive[i] = i
	}
	slices.SortStableFunc(w.alive, func(i, k int) int {
		f, g := w.Feeds[i], w.Feeds[k]
		return cmp.Or(cmp.Compare(f.Size.H, g.Size.H), cmp.Compare(f.Size.W, g.Size.W),
			cmp.Compare(f.order(), g.order()))
	})
}

// round returns the number of photographs until hopeless feeds are dropped again: as many as there were, or
// as many as the passes that are left allow.
func (w *weighing) round() int {
	n := len(w.evidence.Groups)
	if n == 0 {
		return firstRound
	}
	return min(max(firstRound, n), (w.Passes-w.done)/len(w.alive))
}

// measure adds the model's answers to photographs to the evidence.
func (w *weighing) measure(ctx context.Context, photos []Labelled) error {
	read, kept, err := w.read(photos)
	if err != nil || kept == 0 {
		return err
	}
	for _, f := range w.alive {
		for b := range slices.Chunk(read[w.Feeds[f].Size], w.batch) {
			rows, err := w.answers(ctx, w.Feeds[f], b)
			if err != nil {
				return err
			}
			w.evidence.Add(f, rows...)
		}
		w.done += kept
	}
	if w.Progress != nil {
		w.Progress(w.done, max(w.done, w.most))
	}
	return nil
}

// read reads photographs at the sizes of the feeds, and returns how many can be read.
func (w *weighing) read(photos []Labelled) (read map[picture.Size][][]byte, kept int, err error) {
	read = map[picture.Size][][]byte{}
	first := w.Feeds[w.alive[0]].Size
	for _, p := range photos {
		b, err := p.Image(first)
		if err != nil {
			w.unreadable++
			w.unread = cmp.Or(w.unread, err)
			continue
		}
		kept++
		read[first] = append(read[first], b)
		for _, f := range w.alive {
			if size := w.Feeds[f].Size; len(read[size]) < kept {
				if b, err = p.Image(size); err != nil {
					return nil, 0, err
				}
				read[size] = append(read[size], b)
			}
		}
		w.evidence.Groups = append(w.evidence.Groups, p.Group)
		for i, l := range p.Labels {
			w.evidence.Numberings[i] = append(w.evidence.Numberings[i], l)
		}
	}
	return read, kept, nil
}

// dropHopeless ends feeds that are far behind by the evidence so far.
func (w *weighing) dropHopeless() {
	e := w.evidence
	if len(e.Groups) == 0 {
		return
	}
	v := e.verdict(w.Question)
	behind := map[int]float64{}
	for _, h := range v.Hypotheses {
		if b, ok := behind[h.Feed]; !ok || h.Behind < b {
			behind[h.Feed] = h.Behind
		}
	}
	w.alive = slices.DeleteFunc(w.alive, func(f int) bool {
		ends := behind[f] > hopeless && v.others[f] > hopeless
		if ends { // it answers no later images, so its present answers decide
			e.fed[f].behind = behind[f]
		}
		return ends
	})
}

// verdict weighs all hypotheses by the answers so far.
func (e *Evidence) verdict(q Question) Verdict {
	v := Verdict{Images: len(e.Groups), others: make([]float64, len(q.Feeds))}
	likeliest, most := -1, 0
	for f := range q.Feeds {
		all, other := e.likelihoods(f, len(e.fed[f].logits))
		v.others[f] = other
		most = max(most, len(e.fed[f].logits))
		for k, l := range all {
			v.Hypotheses = append(v.Hypotheses, Hypothesis{Feed: f, Numbering: k, Likelihood: l})
		}
	}
	for i, h := range v.Hypotheses {
		if h.Images == most && (likeliest < 0 || h.Log > v.Hypotheses[likeliest].Log) {
			likeliest = i
		}
	}
	if likeliest < 0 { // there is no numbering
		return v
	}
	top := v.Hypotheses[likeliest]
	total := 0.0
	for i := range v.Hypotheses {
		h := &v.Hypotheses[i]
		if i != likeliest {
			h.Behind = max(e.fed[h.Feed].behind, e.lead(top.Likelihood, h.Likelihood))
		}
		h.Posterior = q.Feeds[h.Feed].Prior * q.Numberings[h.Numbering] * math.Exp(-h.Behind)
		total += h.Posterior
	}
	for f := range q.Feeds {
		v.others[f] = top.Log - v.others[f] // how much less evidence it has
		if len(e.fed[f].logits) == most {
			v.Other += q.Other * q.Feeds[f].Prior * math.Exp(-max(0, v.others[f]))
		} else {
			v.others[f] = math.Inf(1)
		}
	}
	total += v.Other
	v.Other /= total
	for i := range v.Hypotheses {
		v.Hypotheses[i].Posterior /= total
	}
	slices.SortStableFunc(v.Hypotheses, func(a, b Hypothesis) int {
		return cmp.Or(cmp.Compare(b.Posterior, a.Posterior), cmp.Compare(a.Behind, b.Behind))
	})
	v.PerClass = e.perClass(v.Hypotheses[0])
	v.Groups = len(v.PerClass)
	return v
}

// perClass counts by group the images on which a hypothesis is right.
func (e *Evidence) perClass(h Hypothesis) [][2]int {
	count := make([][2]int, slices.Max(e.Groups)+1)
	for i, row := range e.fed[h.Feed].logits {
		if int64(argmax(row)) == e.Numberings[h.Numbering][i] {
			count[e.Groups[i]][0]++
		}
		count[e.Groups[i]][1]++
	}
	return count
}

// RunsAt reports whether the model has equally many classes on square images of a side.
func (t *Trial) RunsAt(ctx context.Context, side int) bool {
	s, err := t.answering()
	return err == nil && runsAt(ctx, s.model, side, side)
}

// An answering runs a model that is fed in several ways. It keeps a single probe, since the graph depends
// on channel order and size, and a caller with a process of [ort.Isolated] must not wait for a second one.
type answering struct {
	model modelfile.Model
	batch int
	probe *program.Probe // nil at first
	fed   probeKey       // the feed of probe
}

type probeKey struct {
	order         string
	height, width int
}

func (t *Trial) answering() (*answering, error) {
	payload, err := t.model.Load(0)
	if err != nil {
		return nil, err
	}
	m, err := modelfile.Decode(payload)
	if err != nil {
		return nil, err
	}
	return &answering{model: m, batch: max(1, m.Spec.Batch)}, nil
}

func (s *answering) close() {
	if s.probe != nil {
		s.probe.Close()
	}
	s.probe = nil
}

// answers returns a row of scores, like logits, for each of at most a batch of images.
func (s *answering) answers(ctx context.Context, f Feed, images [][]byte) ([][]float32, error) {
	spec := s.model.Spec
	if !f.Size.IsZero() {
		spec.Height, spec.Width = f.Size.H, f.Size.W
	}
	if err := setPreprocessing(&spec, f.params()); err != nil {
		return nil, err
	}
	key := probeKey{spec.Order, spec.Height, spec.Width}
	if s.probe == nil || s.fed != key {
		s.close()
		p, err := program.NewProbe(modelfile.Model{Spec: spec, ONNX: s.model.ONNX}, s.batch)
		if err != nil {
			return nil, err
		}
		s.probe, s.fed = p, key
	}
	fed := make([]float32, spec.Size()*s.batch)
	for i, b := range images {
		image, err := stages.DecodeTensor(b)
		if err != nil {
			return nil, err
		}
		if err := spec.Normalise(image, fed[i*spec.Size():]); err != nil {
			return nil, err
		}
	}
	answer, err := s.probe.Answer(ctx, fed)
	if err != nil {
		return nil, err
	}
	width := len(answer.Data) / s.batch
	rows := make([][]float32, len(images))
	for i := range images {
		rows[i] = scores(answer.Data[i*width:(i+1)*width], spec)
	}
	return rows, nil
}

// leastProbability replaces a probability of 0, which may be rounded; for logits it is relative to the
// largest one.
const leastProbability = 1e-7

// scores returns numbers from which a softmax makes probabilities: logits, or the logarithms of
// probabilities. A single number is the score of class 1 against class 0.
func scores(row []float32, spec modelfile.Spec) []float32 {
	out := slices.Clone(row)
	if spec.Probabilities {
		for i, p := range row {
			out[i] = float32(math.Log(max(float64(p), leastProbability)))
		}
	}
	if math.IsInf(float64(slices.Min(out)), -1) {
		lowest := slices.Max(out) + float32(math.Log(leastProbability))
		for i, v := range out {
			out[i] = max(v, lowest)
		}
	}
	if len(row) == 1 {
		none := 0.0
		if spec.Probabilities {
			none = math.Log(max(1-float64(row[0]), leastProbability))
		}
		out = []float32{float32(none), out[0]}
	}
	return out
}
