// SPDX-License-Identifier: MIT

// Power series whose coefficients are computed on demand: each series is a goroutine that is asked
// for its next coefficient by one channel and tells it by another. Sinew's twin is
// tests/unit/sync/test_go_series.c.
package main

import "fmt"

type rational struct{ num, den int64 }

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	if a < 0 {
		return -a
	}
	return a
}

func ratio(num, den int64) rational {
	g := gcd(num, den)
	if den < 0 {
		g = -g
	}
	return rational{num / g, den / g}
}

func (a rational) plus(b rational) rational {
	g := gcd(a.den, b.den)
	return ratio(a.num*(b.den/g)+b.num*(a.den/g), a.den/g*b.den)
}

func (a rational) times(b rational) rational {
	x, y := ratio(a.num, b.den), ratio(b.num, a.den)
	return ratio(x.num*y.num, x.den*y.den)
}

func (a rational) String() string {
	if a.den == 1 {
		return fmt.Sprintf("%d", a.num)
	}
	return fmt.Sprintf("%d/%d", a.num, a.den)
}

type series struct {
	ask  chan struct{}
	tell chan rational
}

func (s series) next() rational {
	s.ask <- struct{}{}
	return <-s.tell
}

// begin starts a series: its body waits to be asked, and answers.
func begin(body func(s series)) series {
	s := series{make(chan struct{}), make(chan rational)}
	go body(s)
	return s
}

func (s series) answer(c rational) { s.tell <- c }
func (s series) wait()             { <-s.ask }

// copyFrom tells what u tells.
func (s series) copyFrom(u series) {
	for {
		s.wait()
		s.answer(u.next())
	}
}

// polynomial tells the coefficients given, then the last one for ever.
func polynomial(c ...int64) series {
	return begin(func(s series) {
		for i := 0; ; i++ {
			s.wait()
			if i < len(c) {
				s.answer(ratio(c[i], 1))
			} else {
				s.answer(ratio(c[len(c)-1], 1))
			}
		}
	})
}

// tee makes two of one. A lazy one reads behind; while the source is at work, what is known
// already is told all the same: the source may need it.
func tee(u series) (series, series) {
	a := series{make(chan struct{}), make(chan rational)}
	b := series{make(chan struct{}), make(chan rational)}
	go func() {
		both := [2]series{a, b}
		ask := [2]chan struct{}{a.ask, b.ask} // nil: it has asked, and waits
		var told [2]int
		var known []rational
		var fresh chan rational // nil: the source was not asked
		for {
			who := -1
			select {
			case <-ask[0]:
				who = 0
			case <-ask[1]:
				who = 1
			case c := <-fresh:
				known = append(known, c)
				fresh = nil
			}
			if who >= 0 {
				ask[who] = nil
			}
			for i := range both {
				if ask[i] != nil {
					continue
				}
				if told[i] < len(known) {
					both[i].answer(known[told[i]])
					told[i]++
					ask[i] = both[i].ask
				} else if fresh == nil {
					u.ask <- struct{}{}
					fresh = u.tell
				}
			}
		}
	}()
	return a, b
}

func add(u, v series) series {
	return begin(func(s series) {
		for {
			s.wait()
			a := u.next()
			s.answer(a.plus(v.next()))
		}
	})
}

func scale(c rational, u series) series {
	return begin(func(s series) {
		for {
			s.wait()
			s.answer(c.times(u.next()))
		}
	})
}

// shift is c + x u.
func shift(c rational, u series) series {
	return begin(func(s series) {
		s.wait()
		s.answer(c)
		s.copyFrom(u)
	})
}

// multiply: (a + x u)(b + x v) = ab + x (av + bu + x uv).
func multiply(u, v series) series {
	return begin(func(s series) {
		s.wait()
		a, b := u.next(), v.next()
		s.answer(a.times(b))
		s.wait()
		u1, u2 := tee(u)
		v1, v2 := tee(v)
		sum := add(add(scale(a, v1), scale(b, u1)), shift(ratio(0, 1), multiply(u2, v2)))
		s.answer(sum.next())
		s.copyFrom(sum)
	})
}

// knot begins with first and goes on with what rest makes of the series itself.
func knot(first rational, rest func(self series) series) series {
	self := make(chan series, 1)
	mine, again := tee(begin(func(s series) {
		s.wait()
		s.answer(first)
		s.wait()
		u := rest(<-self)
		s.answer(u.next())
		s.copyFrom(u)
	}))
	self <- again
	return mine
}

// reciprocal: r = 1/(a + x u) has r0 = 1/a, and then -r0 u r.
func reciprocal(u series) series {
	a := u.next()
	return knot(ratio(a.den, a.num), func(self series) series {
		return scale(ratio(-a.den, a.num), multiply(u, self))
	})
}

func differentiate(u series) series {
	return begin(func(s series) {
		for n := int64(0); ; n++ {
			s.wait()
			if n == 0 {
				u.next()
			}
			s.answer(u.next().times(ratio(n+1, 1)))
		}
	})
}

func integrate(u series, c rational) series {
	return begin(func(s series) {
		s.wait()
		s.answer(c)
		for n := int64(1); ; n++ {
			s.wait()
			s.answer(u.next().times(ratio(1, n)))
		}
	})
}

// substitute puts v, which begins with 0, into u: u0 + x v' (u' of v).
func substitute(u, v series) series {
	return begin(func(s series) {
		s.wait()
		a := u.next()
		s.answer(a)
		s.wait()
		v1, v2 := tee(v)
		rest := multiply(behind(v1), substitute(u, v2))
		s.answer(rest.next())
		s.copyFrom(rest)
	})
}

// exponential: e' = u' e, and e0 = 1 as u0 is 0.
func exponential(u series) series {
	return knot(ratio(1, 1), func(self series) series {
		return behind(integrate(multiply(self, differentiate(u)), ratio(1, 1)))
	})
}

// tangent: t' = 1 + t t.
func tangent() series {
	return knot(ratio(0, 1), func(self series) series {
		a, b := tee(self)
		return behind(integrate(add(polynomial(1, 0), multiply(a, b)), ratio(0, 1)))
	})
}

// behind is u without its first coefficient.
func behind(u series) series {
	u.next()
	return u
}

func sayOne(name string, u series, terms int) {
	line := ""
	for i := 0; i < terms; i++ {
		line += " " + u.next().String()
	}
	say("%s:%s", name, line)
}

func saySeries(terms int) {
	zero := ratio(0, 1)
	sayOne("ones", polynomial(1), terms)
	sayOne("ones and twos", add(polynomial(1), polynomial(2)), terms)
	sayOne("ones squared", multiply(polynomial(1), polynomial(1)), terms)
	sayOne("ones differentiated", differentiate(polynomial(1)), terms)
	sayOne("ones integrated", integrate(polynomial(1), zero), terms)
	sayOne("1 / ones", reciprocal(polynomial(1)), terms)
	sayOne("1 / (2 - x)", reciprocal(polynomial(2, -1, 0)), terms)
	sayOne("exp x", exponential(polynomial(0, 1, 0)), terms)
	sayOne("exp of ones integrated", exponential(integrate(polynomial(1), zero)), terms)
	sayOne("ones of x + x^2", substitute(polynomial(1), polynomial(0, 1, 1, 0)), terms)
	sayOne("atan", integrate(substitute(polynomial(1), polynomial(0, 0, -1, 0)), zero), terms)
	sayOne("tan", tangent(), terms)
}
