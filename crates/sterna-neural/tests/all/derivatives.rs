//! First and second derivatives of every operation against finite differences in f64.

use crate::common::{check_derivatives, numbers};
use sterna_neural::{Graph, Value};

type Record = for<'g> fn(&'g Graph, Value<'g>, Value<'g>, Value<'g>) -> Value<'g>;

/// x: 3 rows of 4; y: 3 rows of 4, positive; p: 12 parameters.
fn check(name: &str, record: Record) {
    let rows = 3;
    let inputs = vec![numbers(rows * 4, 1, 1.3, 0.1), numbers(rows * 4, 2, 0.4, 1.0)];
    let parameters = numbers(12, 3, 0.8, 0.1);
    check_derivatives(name, rows, &inputs, &parameters, 1e-7, |g, x, p| record(g, x[0], x[1], p));
}

#[test]
fn elementwise() {
    check("exp", |_, x, y, _| (x * y).exp());
    check("log", |_, x, y, _| (y + x * x).log());
    check("tanh", |_, x, y, _| (x * y).tanh());
    check("sigmoid", |_, x, y, _| (x * y).sigmoid() * x);
    check("softplus", |_, x, y, _| (x * y).softplus());
    check("silu", |_, x, y, _| (x * y).silu());
    check("sqrt", |_, x, y, _| (y + x * x).sqrt());
    check("recip", |_, x, y, _| x / y);
    check("sin", |_, x, y, _| (x * y * 3.0).sin());
    check("cos", |_, x, y, _| (x * y * 3.0).cos());
    check("abs", |_, x, y, _| (x * y).abs() * x);
    check("finite or zero", |_, x, y, _| x.finite_or_zero() * x * y + (x - 10.0).log().finite_or_zero());
    check("sign and step", |_, x, y, _| x.sign() * x * x * y + x.step() * y * y * x);
    check("affine", |_, x, y, _| (2.0 * x - 0.5) * (1.0 - y) * x);
    check("sub", |_, x, y, _| (x - y) * (x - y) * x);
    check("fused multiply-adds", |_, x, y, _| ((x * y + y) * (x * x - y)) * (y - x * x).tanh());
}

#[test]
fn broadcasts() {
    check("row", |_, x, y, p| (x * p.slice(0, 4)).tanh() * y);
    check("column", |_, x, y, _| (x * x.slice(1, 1)).tanh() * y);
    check("scalar", |_, x, y, p| (x * p.slice(5, 1)).tanh() * y);
    check("two columns", |_, x, y, p| (x.slice(1, 1) * y.slice(2, 1)).exp() * p.slice(3, 1));
    check("explicit", |_, x, y, _| x.slice(0, 1).broadcast(y.shape()).sin() * y);
}

#[test]
fn sums() {
    check("columns", |_, x, y, _| (x * y).sum_cols().tanh() * x);
    check("rows", |_, x, y, _| (x * y).sum_rows().tanh() * x);
    check("mean over rows", |_, x, y, _| ((x * y).mean_rows() - x).tanh());
    check("logsumexp", |_, x, y, _| (x * y * 2.0).log_sum_exp() * y);
    check("detach", |_, x, y, _| x * x * y + (x.detach() - x) * (x.detach() - x) * 0.0);
}

#[test]
fn products() {
    check("plain", |_, x, _, p| x.matmul(p.reshape(4, 3)).tanh());
    check("with bias", |_, x, y, p| (x.matmul(p.reshape(4, 3)) + p.slice(2, 3)).tanh() * y.slice(1, 3));
    check("with start", |_, x, y, p| (x.matmul(p.reshape(4, 3)) + y.slice(1, 3)).tanh());
    check("second transposed", |_, x, _, p| x.matmul_transposed(p.reshape(3, 4)).tanh());
    check("first transposed", |_, x, y, _| x.transposed_matmul(y).tanh());
    check("sum of transposed", |_, x, y, p| {
        (x.transposed_matmul(y) + y.transposed_matmul(x * x)).tanh() * p.slice(1, 4)
    });
    check("of fixed matrices", |_, x, _, p| {
        let w = p.reshape(4, 3);
        x.matmul(w.matmul(p.reshape(3, 4))).tanh()
            + x.matmul(w.matmul_transposed(w)).sin()
            + x.slice(0, 3).matmul(w.transposed_matmul(w)).sum_cols()
    });
    check("sums of rows", |_, x, y, p| {
        (x.sum_rows() + (x * y).sum_rows() + p.reshape(3, 4).sum_rows()).tanh() * x
    });
}

#[test]
fn moves() {
    check("slice and pad", |_, x, y, _| x.slice(1, 2).tanh().pad(1, 4) * y + x.slice(3, 1).pad(0, 4));
    check("concat", |g, x, y, p| {
        g.concat(&[x.slice(2, 2), y, x * x]).matmul(g.constant(2, &numbers(20, 9, 1.0, 0.0))) * p.slice(4, 2)
    });
    check("reshape", |_, x, y, p| {
        x.reshape(2, 2).matmul(p.slice(0, 6).reshape(2, 3)).tanh().reshape(1, 6) * y.slice(0, 1)
    });
    check("gather", |_, x, y, _| x.reshape(4, 1).gather(&[3, 1, 1, 0]).tanh().reshape(1, 4) * y);
    check("scatter", |_, x, y, _| {
        x.reshape(4, 1).scatter(&[1, 0, 1, 1], 2).tanh().reshape(1, 2) * y.slice(1, 2)
    });
    check("sum of a group", |_, x, y, _| x.reshape(2, 2).sum_group().tanh() * y.slice(2, 2));
}
