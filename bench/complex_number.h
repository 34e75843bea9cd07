// Complex: a complex number of two doubles. std::complex looks for infinities in each product.
#pragma once

namespace outcore::bench {

struct Complex {
  double re = 0, im = 0;
};

inline Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
inline Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
inline Complex operator*(Complex a, double b) { return {a.re * b, a.im * b}; }
inline Complex operator*(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

}  // namespace outcore::bench
