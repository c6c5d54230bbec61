package mosaic

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/runexp/runexp/stages"
)

// FocusParams are the parameters of [Focus].
type FocusParams struct {
	Count int    `yaml:"count" doc:"mosaics of each class" min:"1" max:"100000"`
	Size  string `yaml:"size" doc:"full: quadrants of the images' size, so that a mosaic has twice that; half: of half that, each pixel the mean of 2×2, so that a mosaic has the images' size" choices:"full|half"`
	Heads bool   `yaml:"heads" doc:"targets name a quadrant of the class too, for models with a head for each: model/difull and model/dipart need it, others ignore the quadrant"`
}

// Focus builds the mosaics of Arias-Duart, Parés, Garcia-Gasulla and Giménez-Ábalos, "Focus! Rating XAI
// Methods and Finding Biases", FUZZ-IEEE 2022: two images of a target class and two of other classes, at
// random places of a 2×2 grid.
//
// The item class-0003/mosaic-0007 is a mosaic of class 3; its origin is the first image of that class in it.
// Facts: height and width on images and masks.
var Focus = stages.New(stages.Def[FocusParams]{
	Name: "mosaic/focus",
	Doc: `mosaics of two images of a class and two of others

For every class with two images there are count mosaics of 2×2: two different images of
the class, two different ones of other classes, at random places. The images of a class
are used in random order, again once all were used. The class of an image is its label,
or its target if targets is wired; if both are wired, images on which they differ are
excluded. Explain the class on the port targets; score/focus tells how much of that
lies on the quadrants of the class, which are the masks.

Mosaics of full size need a model of larger images, such as model/gridpg makes.
Arias-Duart et al., FUZZ-IEEE 2022.`,
	Version:  1,
	Relation: stages.Whole,
	Seeded:   true,
	Inputs:   classified("images of one size"),
	Outputs: []stages.Port{
		{Name: "images", Type: stages.Images, Doc: "the mosaic"},
		{Name: "targets", Type: stages.Targets, Doc: "the class of two of its quadrants"},
		{Name: "masks", Type: stages.Masks, Doc: "1 on these quadrants; facts: height, width"},
	},
	Defaults: FocusParams{Count: 10, Size: "full"},
	Check:    func(_ FocusParams, wired func(string) bool) error { return classesAreKnown(wired) },
	Facts: func(p FocusParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		height, errH := strconv.Atoi(in["images"]["height"])
		width, errW := strconv.Atoi(in["images"]["width"])
		if errH != nil || errW != nil {
			return map[string]stages.Facts{}, nil // known once the images are
		}
		if p.Size == "full" {
			height, width = 2*height, 2*width
		}
		return sized(height, width, "images", "masks"), nil
	},
	Run:   runFocus,
	Hooks: func(p FocusParams) stages.Hooks { return stages.Hooks{Most: p.most} },
})

// most returns how many mosaics there are if the images are two of each class.
func (p FocusParams) most(in map[string]stages.Amount) int {
	if n := in["images"].Items; n >= 4 {
		return n / 2 * p.Count
	}
	return 0
}

// sized returns facts that tell the size of the items on some ports.
func sized(height, width int, ports ...string) map[string]stages.Facts {
	all := map[string]stages.Facts{}
	for _, p := range ports {
		all[p] = stages.Facts{"height": strconv.Itoa(height), "width": strconv.Itoa(width)}
	}
	return all
}

func runFocus(ctx context.Context, p FocusParams, e *stages.Env) error {
	classes, err := classesOf(ctx, e)
	if err != nil {
		return err
	}
	pools := map[int64][]int{}
	var used []int // images with a class
	for i, c := range classes {
		if c >= 0 {
			pools[c] = append(pools[c], i)
			used = append(used, i)
		}
	}
	images := &e.Ports["images"][0]
	load := func(i int) (stages.Tensor, error) {
		t, err := imageOf(images, i)
		if err == nil && p.Size == "half" {
			t, err = halved(t)
		}
		return t, err
	}
	built := 0
	var shape []int
	for _, class := range slices.Sorted(maps.Keys(pools)) {
		pool := pools[class]
		if len(pool) < 2 || len(used)-len(pool) < 2 {
			continue
		}
		// A class has the same mosaics whatever other classes there are images of, those apart.
		draw := &focusDraw{rng: e.SharedRand(fmt.Sprintf("class %d", class)), pool: pool,
			others: slices.DeleteFunc(slices.Clone(used), func(i int) bool { return classes[i] == class })}
		for k := range p.Count {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			cells, quadrants := draw.next()
			mosaic, cell, err := pasted(images, load, cells, 2, shape)
			if err != nil {
				return err
			}
			shape = cell
			image, err := images.Items.At(cells[quadrants[0]])
			if err != nil {
				return err
			}
			target := []int64{class}
			if p.Heads {
				target = append(target, -1, int64(quadrants[0]))
			}
			id := fmt.Sprintf("class-%04d/mosaic-%04d", class, k)
			e.Emit("images", id, image.Origin, mosaic)
			e.Emit("targets", id, image.Origin, stages.NewTensor(target, len(target)).Encode())
			e.Emit("masks", id, image.Origin, quadrantMask(quadrants, shape[1], shape[2]))
			built++
		}
		e.Done(1)
	}
	if built == 0 {
		return fmt.Errorf("too few images for a mosaic: there are %d images of %d classes, a mosaic needs "+
			"two of a class and two of others", len(used), len(pools))
	}
	for port, f := range sized(2*shape[1], 2*shape[2], "images", "masks") {
		e.SetFacts(port, f)
	}
	return nil
}

// A focusDraw draws the mosaics of one class.
type focusDraw struct {
	rng          *rand.Rand
	pool, others []int
	deck         []int // images of the class that weren't used since all were
}

// next returns the images of the next mosaic by quadrant, row by row, and the quadrants of the class.
func (d *focusDraw) next() (cells []int, quadrants [2]int) {
	place := d.rng.Perm(4)
	cells = make([]int, 4)
	first := d.turn(-1)
	cells[place[0]], cells[place[1]] = first, d.turn(first)
	a := d.rng.IntN(len(d.others))
	b := d.rng.IntN(len(d.others) - 1)
	if b >= a {
		b++
	}
	cells[place[2]], cells[place[3]] = d.others[a], d.others[b]
	return cells, [2]int{place[0], place[1]}
}

// turn returns an image of the class other than one; all have their turn before any has a second one.
func (d *focusDraw) turn(other int) int {
	for {
		for k, i := range d.deck {
			if i != other {
				d.deck = slices.Delete(d.deck, k, k+1)
				return i
			}
		}
		fresh := slices.Clone(d.pool)
		d.rng.Shuffle(len(fresh), func(i, k int) { fresh[i], fresh[k] = fresh[k], fresh[i] })
		d.deck = append(d.deck, fresh...)
	}
}

// halved returns an image of half the height and width, each pixel the mean of four: of bytes the nearest,
// and the even one of two.
func halved(t stages.Tensor) (stages.Tensor, error) {
	c, h, w := t.Shape[0], t.Shape[1], t.Shape[2]
	if h%2 != 0 || w%2 != 0 {
		return t, fmt.Errorf("an image of %d×%d pixels has no half size: use size: full", h, w)
	}
	v := t.Float32s()
	out := make([]float32, 0, len(v)/4)
	for y := 0; y < c*h; y += 2 {
		for x := 0; x < w; x += 2 {
			at := y*w + x
			out = append(out, (v[at]+v[at+1]+v[at+w]+v[at+w+1])/4)
		}
	}
	if t.DType != stages.U8 {
		return stages.NewTensor(out, c, h/2, w/2), nil
	}
	bytes := make([]uint8, len(out))
	for i, x := range out {
		bytes[i] = uint8(x) // of quarters
		if rest := x - float32(bytes[i]); rest > 0.5 || rest == 0.5 && bytes[i]%2 == 1 {
			bytes[i]++
		}
	}
	return stages.NewTensor(bytes, c, h/2, w/2), nil
}

// quadrantMask returns a mask of two quadrants of the given size.
func quadrantMask(quadrants [2]int, height, width int) []byte {
	mask := make([]uint8, 4*height*width)
	for _, q := range quadrants {
		for y := range height {
			from := (q/2*height+y)*2*width + q%2*width
			for x := range width {
				mask[from+x] = 1
			}
		}
	}
	return stages.NewTensor(mask, 2*height, 2*width).Encode()
}
