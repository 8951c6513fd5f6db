use sterna_neural::*;
fn time(
    name: &str,
    flop: f64,
    graph: &Graph,
    outs: &[Value],
    params: usize,
    rows: usize,
    ins: &[Vec<f32>],
    touch: bool,
) {
    let d: &dyn Device<f32> = &Cpu::new(1);
    let mut p = d.compile(graph, outs).unwrap();
    let mut par = Parameters::new((0..params).map(|i| ((i as f32 * 0.7548).fract() - 0.5) * 0.05).collect());
    let s: Vec<&[f32]> = ins.iter().map(|x| &x[..]).collect();
    p.run(&par, rows, &s).unwrap();
    let mut t = vec![];
    for _ in 0..60 {
        if touch {
            par.values_mut();
        }
        let b = std::time::Instant::now();
        p.run(&par, rows, &s).unwrap();
        t.push(b.elapsed().as_secs_f64());
    }
    t.sort_by(f64::total_cmp);
    println!(
        "{name:<28} {:>9.1} µs {:>7.1} GFLOP/s (best {:.1})",
        t[30] * 1e6,
        flop / t[30] / 1e9,
        flop / t[0] / 1e9
    );
}
fn main() {
    let n = 512;
    let x: Vec<f32> = (0..n * n).map(|i| ((i as f32 * 0.31).fract() - 0.5)).collect();
    let f = 2.0 * (n as f64).powi(3);
    {
        let g = Graph::new();
        let a = g.input("a", n);
        let w = g.parameter(0, n, n);
        time("product 512", f, &g, &[a.matmul(w)], n * n, n, &[x.clone()], false);
        time("product 512 repack", f, &g, &[a.matmul(w)], n * n, n, &[x.clone()], true);
        time("product^T 512 repack", f, &g, &[a.matmul_transposed(w)], n * n, n, &[x.clone()], true);
        time("product 31", f * 31.0 / 512.0, &g, &[a.matmul(w)], n * n, 31, &[x[..31 * n].to_vec()], false);
        time("silu 512", (n * n) as f64, &g, &[a.silu()], n * n, n, &[x.clone()], false);
        time("sigmoid 512", (n * n) as f64, &g, &[a.sigmoid()], n * n, n, &[x.clone()], false);
        time("mul 512", (n * n) as f64, &g, &[a * a], n * n, n, &[x.clone()], false);
        let s = a.sigmoid();
        let h = a.silu();
        time("silu+derivative", (n * n) as f64, &g, &[h, s + h * (1.0 - s)], n * n, n, &[x.clone()], false);
    }
    {
        let g = Graph::new();
        let a = g.input("a", n);
        let b = g.input("b", n);
        time("transposed 512", f, &g, &[a.transposed_matmul(b)], 0, n, &[x.clone(), x.clone()], false);
        time("sum rows", (n * n) as f64, &g, &[b.sum_rows()], 0, n, &[x.clone(), x.clone()], false);
    }
    {
        let n = 128;
        let f = 2.0 * 512.0 * 128.0 * 128.0;
        let x = x[..512 * 128].to_vec();
        let g = Graph::new();
        let a = g.input("a", n);
        let b = g.input("b", n);
        let w = g.parameter(0, n, n);
        time("product 128", f, &g, &[a.matmul(w)], n * n, 512, &[x.clone(), x.clone()], true);
        time("transposed 128", f, &g, &[a.transposed_matmul(b)], n * n, 512, &[x.clone(), x.clone()], false);
        time("silu 128", 512.0 * 128.0, &g, &[a.silu()], n * n, 512, &[x.clone(), x.clone()], false);
    }
}
