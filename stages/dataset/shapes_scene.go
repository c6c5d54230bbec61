package dataset

import ()

// A shape is the outline of an object.
type shape int

const (
	disc shape = iota
	square
	triangle
	cross
	shapeCount
)

var shapeNames = [shapeCount]string{"disc", "square", "triangle", "cross"}

// A texture is the pattern inside the outline.
type texture int

const (
	stripes texture = iota
	checks
	dots
	textureCount
)

var textureNames = [textureCount]string{"striped", "checked", "dotted"}

const classCount = int(shapeCount) * int(textureCount)

// className returns the name of a class: 0 is a striped disc, 1 a checked disc, 2 a dotted disc, 3 a striped
// square and so on.
func className(label int) string {
	return textureNames[label%int(textureCount)] + " " + shapeNames[label/int(textureCount)]
}

// labelOf returns the class of a draw. Each block of classCount draws, counted from draw 0, contains every
// class once, in random order.
func labelOf(seed, index int) int {
	var order [classCount]int
	s := newStream(uint64(seed), uint64(index/classCount), 'l')
	for i := range order {
		k := int(s.between(0, int64(i)))
		order[i], order[k] = order[k], i
	}
	return order[index%classCount]
}

// A scene describes one object and its place. All domains render the same scenes.
type scene struct {
	label   int
	shape   shape
	texture texture
	x, y    int64 // the object's centre
	radius  int64 // of a disc; the other shapes have nearly the same area
	tilt    turn  // of the outline
	grain   turn  // of the texture
	period  int64 // of the texture
	u, v    int64 // the texture's phase
}

// newScene draws scene number index of a seed.
func newScene(seed, index int) scene {
	s := newStream(uint64(seed), uint64(index), 's')
	c := ofClass(labelOf(seed, index))
	c.radius = s.between(12*unit, 18*unit)
	reach := c.reach() + unit
	c.x, c.y = s.between(reach, side-reach), s.between(reach, side-reach)
	c.vary(&s)
	return c
}

// newPair draws two scenes of different classes, in opposite corners of one image. Their objects are as small
// as any, so that they don't overlap. The first has the class of the scene of the same number.
func newPair(seed, index int) []scene {
	s := newStream(uint64(seed), uint64(index), 'p')
	label := labelOf(seed, index)
	other := (label + int(s.between(1, int64(classCount)-1))) % classCount
	pair := []scene{ofClass(label), ofClass(other)}
	left, top := int(s.between(0, 1)), int(s.between(0, 1))
	for i := range pair {
		c := &pair[i]
		c.radius = 12 * unit
		reach := c.reach() + unit
		at := [2]int64{reach, side - reach}
		c.x, c.y = at[(left+i)%2], at[(top+i)%2]
		c.vary(&s)
	}
	return pair
}

// ofClass returns a scene of a class, without a place.
func ofClass(label int) scene {
	return scene{label: label, shape: shape(label / int(textureCount)),
		texture: texture(label % int(textureCount))}
}

// vary draws the rotation of an object and its texture.
func (c *scene) vary(s *stream) {
	c.tilt, c.grain = newTurn(s.between(0, 359)), newTurn(s.between(0, 359))
	c.period = s.between(6*unit, 8*unit)
	c.u, c.v = s.between(0, c.period-1), s.between(0, c.period-1)
}

// reach returns an upper bound of the object's extent from its centre.
func (c *scene) reach() int64 {
	switch c.shape {
	case square:
		return c.radius * 5 / 4
	case triangle:
		return c.radius * 3 / 2
	case cross:
		return c.radius * 4 / 3
	default:
		return c.radius
	}
}

// outside returns the signed distance of (x, y), relative to the centre, to the outline: negative inside, and
// exact to first order near the outline.
func (c *scene) outside(x, y int64) int64 {
	u, v := c.tilt.apply(x, y)
	switch c.shape {
	case square:
		return max(abs(u), abs(v)) - c.radius*7/8
	case triangle: // the three normals are (0, 1) and (±√3/2, −1/2)
		return max(v, (abs(u)*14189-v*8192)>>14) - c.radius*3/4
	case cross:
		long, short := c.radius*5/4, c.radius*13/32
		u, v = abs(u), abs(v)
		return min(max(u-long, v-short), max(u-short, v-long))
	default:
		return (u*u + v*v - c.radius*c.radius) / (2 * c.radius)
	}
}

// shade returns the share of the texture's second colour at (x, y), in 1/256, with edges smoothed by cover.
func (c *scene) shade(x, y int64, cover func(outside int64) int64) int64 {
	u, v := c.grain.apply(x, y)
	u, v = modulo(u+c.u, c.period)-c.period/2, modulo(v+c.v, c.period)-c.period/2
	switch c.texture {
	case stripes:
		return cover(abs(u) - c.period/4)
	case checks:
		a, b := cover(abs(u)-c.period/4), cover(abs(v)-c.period/4)
		return a + b - 2*a*b/256
	default:
		r := c.period * 11 / 32
		return cover((u*u + v*v - r*r) / (2 * r))
	}
}

// paint renders scenes, each in front of those before it, in a domain. It returns the image, u8 [3, size,
// size], and the mask of each scene's object, u8 [size, size].
func paint(scenes []scene, domain string, seed, index, size int) (pixels []uint8, masks [][]uint8) {
	c := newCanvas(size)
	r := newStream(uint64(seed), uint64(index), uint64(domain[0]))
	behind, colours, noise := day, vivid, int64(8)
	switch domain {
	case "b":
		behind, colours, noise = night, greyish, 22
	case "c":
		behind, colours, noise = above, painted, 14
	}
	behind(c, &r)
	for i := range scenes {
		mask := make([]uint8, size*size)
		first, second := colours(&r)
		c.object(&scenes[i], first, second, mask)
		masks = append(masks, mask)
	}
	c.noise(&r, noise)
	return c.pixels, masks
}

// day paints the background of domain a: a bright, smooth gradient of two colours, with coloured ellipses
// and strokes.
func day(c *canvas, r *stream) {
	hue := r.between(0, 1535)
	from := hsv(hue, r.between(15, 70), r.between(205, 255))
	to := hsv(hue+r.between(-400, 400), r.between(15, 70), r.between(205, 255))
	t := newTurn(r.between(0, 359))
	c.fill(func(x, y int64) colour {
		u, _ := t.apply(x-side/2, y-side/2)
		return mix(from, to, min(max(128+u*256/side, 0), 256))
	})
	for range r.between(3, 6) {
		long := r.between(7*unit, 15*unit)
		c.blob(r.between(0, side), r.between(0, side), long, long*r.between(25, 50)/100,
			newTurn(r.between(0, 359)),
			hsv(r.between(0, 1535), r.between(70, 190), r.between(120, 240)), r.between(120, 230))
	}
	for range r.between(3, 6) {
		c.line(r.between(0, side), r.between(0, side), r.between(12*unit, 40*unit),
			r.between(unit*3/4, unit*5/2), newTurn(r.between(0, 359)),
			hsv(r.between(0, 1535), r.between(60, 220), r.between(70, 230)), r.between(150, 256))
	}
}

// vivid returns the two colours of an object of domain a.
func vivid(r *stream) (first, second colour) {
	hue := r.between(0, 1535)
	dark := hsv(hue, r.between(150, 255), r.between(60, 130))
	light := hsv(hue+r.between(200, 1336), r.between(110, 220), r.between(215, 255))
	if r.between(0, 1) == 1 {
		return light, dark
	}
	return dark, light
}

// night paints the background of domain b: dark clouds and long faint streaks.
func night(c *canvas, r *stream) {
	hue := r.between(0, 1535)
	from := hsv(hue, r.between(60, 170), r.between(8, 40))
	to := hsv(hue+r.between(-250, 250), r.between(60, 170), r.between(60, 105))
	coarse, fine := newClouds(r, 5), newClouds(r, 14)
	c.fill(func(x, y int64) colour {
		return mix(from, to, (5*coarse.at(x, y)+3*fine.at(x, y))>>3)
	})
	for range r.between(4, 8) {
		c.line(r.between(0, side), r.between(0, side), r.between(20*unit, 70*unit),
			r.between(unit/2, unit*3/2), newTurn(r.between(0, 359)),
			hsv(r.between(0, 1535), r.between(20, 90), r.between(110, 200)), r.between(90, 200))
	}
	for range r.between(1, 3) {
		long := r.between(8*unit, 18*unit)
		c.blob(r.between(0, side), r.between(0, side), long, long*r.between(25, 45)/100,
			newTurn(r.between(0, 359)),
			hsv(r.between(0, 1535), r.between(30, 120), r.between(90, 180)), r.between(90, 180))
	}
}

// greyish returns the two colours of an object of domain b.
func greyish(r *stream) (first, second colour) {
	hue := r.between(0, 1535)
	dim := hsv(hue, r.between(20, 90), r.between(65, 105))
	pale := hsv(hue+r.between(-150, 150), r.between(5, 70), r.between(150, 225))
	if r.between(0, 1) == 1 {
		return pale, dim
	}
	return dim, pale
}

// above paints the background of domain c: a patchwork of fields, seen from above, with rough ground,
// hedges between the fields and straight roads.
func above(c *canvas, r *stream) {
	cells := r.between(2, 4)
	fields := make([]colour, 4*cells*cells)
	for i := range fields {
		fields[i] = hsv(r.between(120, 560), r.between(60, 150), r.between(80, 165))
	}
	t, rough := newTurn(r.between(0, 359)), newClouds(r, 32)
	u0, v0 := r.between(0, side), r.between(0, side)
	wide := side / cells
	c.fill(func(x, y int64) colour {
		u, v := t.apply(x-side/2, y-side/2)
		u, v = u+side+u0, v+side+v0
		f := fields[modulo(v/wide, 2*cells)*2*cells+modulo(u/wide, 2*cells)]
		if min(modulo(u, wide), modulo(v, wide)) < unit { // a hedge
			f = mix(f, colour{}, 110)
		}
		return mix(f, colour{}, rough.at(x, y)*80>>8)
	})
	for range r.between(1, 3) {
		c.line(r.between(0, side), r.between(0, side), 4*side, r.between(unit, unit*3),
			newTurn(r.between(0, 359)), hsv(r.between(0, 256), r.between(0, 60), r.between(110, 190)),
			r.between(180, 256))
	}
	for range r.between(4, 10) {
		d := r.between(unit*3/2, 4*unit)
		c.blob(r.between(0, side), r.between(0, side), d, d, newTurn(0),
			hsv(r.between(300, 600), r.between(90, 200), r.between(30, 90)), r.between(160, 256))
	}
}

// painted returns the two colours of an object of domain c, like painted roofs.
func painted(r *stream) (first, second colour) {
	hue := r.between(-120, 120) + 1536*r.between(0, 1)/2
	dark := hsv(hue, r.between(90, 220), r.between(70, 130))
	light := hsv(hue+r.between(-80, 80), r.between(10, 140), r.between(175, 245))
	if r.between(0, 1) == 1 {
		return light, dark
	}
	return dark, light
}

// clouds is a smooth random field: values from 0 to 256 on a grid, interpolated in between.
type clouds struct {
	cells  int64
	values []int64
}

func newClouds(r *stream, cells int64) clouds {
	f := clouds{cells, make([]int64, (cells+1)*(cells+1))}
	for i := range f.values {
		f.values[i] = r.between(0, 256)
	}
	return f
}

// at returns the field's value at a point of the image.
func (f clouds) at(x, y int64) int64 {
	x, y = x*f.cells, y*f.cells
	v := f.values[y/side*(f.cells+1)+x/side:]
	x, y = ease(x%side), ease(y%side)
	top := v[0]*256 + (v[1]-v[0])*x
	v = v[f.cells+1:]
	bottom := v[0]*256 + (v[1]-v[0])*x
	return (top*256 + (bottom-top)*y) >> 16
}

// ease maps 0 … side to 0 … 256 along 3t² − 2t³, which hides the grid.
func ease(t int64) int64 {
	t = t * 256 / side
	return t * t * (768 - 2*t) >> 16
}
