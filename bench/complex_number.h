// Complex: a complex number of two doubles. std::complex looks for infinities in each product.
// A plain type: a static array of it is zeros without a constructor, as `dlm` wants it.
#pragma once

namespace outcore::bench {

struct Complex {
  double re, im;
};

inline Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
inline Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
inline Complex operator*(Complex a, double b) { return {a.re * b, a.im * b}; }
inline Complex operator*(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

}  // namespace outcore::bench
