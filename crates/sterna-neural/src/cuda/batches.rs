//! Batches drawn on the GPU: CUDA C for a [`Recipe`], one warp a journey.

use std::fmt::Write;

use crate::recipe::{Field, PairChoice, Recipe, Way};

pub(super) const PHILOX: &str = include_str!("kernels/philox.cu");

/// A kernel `draw(A, betas, samples, state)` that writes all inputs, which begin at `inputs` in the arena.
pub(super) fn source(preamble: &str, recipe: &Recipe, inputs: &[usize]) -> String {
    let Recipe { journeys, choices_seed, noise_seed, first_step, dim, trained, betas, .. } = recipe;
    let pairs = betas.len() - 1;
    let tag = (sterna::streams::Phase::Training as u32) << 16;
    let (pair, mut word) = match recipe.pair {
        PairChoice::Drawn => (format!("below(word(0), {pairs})"), 1),
        PairChoice::Spread(share) => (format!("(int)((step + row / {share}) % {pairs})"), 0),
    };
    let forward = match recipe.way {
        Way::Alternating => "row % 2 == 0",
        Way::Forward => "true",
        Way::Backward => "false",
    };
    let mut body = String::new();
    for (field, at) in recipe.fields.iter().zip(inputs) {
        let line = match field {
            Field::Lower => format!("if (lane == 0) A[(I){at} + row] = betas[pair];"),
            Field::Upper => format!("if (lane == 0) A[(I){at} + row] = betas[pair + 1];"),
            Field::Which => format!(
                "for (int c = lane; c < {pairs}; c += 32) A[(I){at} + row * {pairs} + c] = c == pair ? T(1) : T(0);"
            ),
            Field::Forward => format!("if (lane == 0) A[(I){at} + row] = forward ? T(1) : T(0);"),
            Field::Start | Field::AtLower | Field::AtUpper => {
                let chain = match field {
                    Field::Start => "(forward ? pair : pair + 1)",
                    Field::AtLower => "pair",
                    _ => "(pair + 1)",
                };
                word += 1;
                format!(
                    "{{ const float *from = samples + ((long long){chain} * {trained} + below(word({}), {trained})) * {dim};\n\
                     for (int c = lane; c < {dim}; c += 32) A[(I){at} + row * {dim} + c] = from[c]; }}",
                    word - 1
                )
            }
            Field::Noise(cols) => format!(
                "for (int b = lane; 2 * b < {cols}; b += 32) {{ double first, second;\n\
                 normal_pair(philox({noise_seed}ull, step, row, {tag}u | b), first, second);\n\
                 A[(I){at} + row * {cols} + 2 * b] = first;\n\
                 if (2 * b + 1 < {cols}) A[(I){at} + row * {cols} + 2 * b + 1] = second; }}"
            ),
            Field::Times { seed, shortest } => format!(
                "if (lane == 0) {{ const double u = unit(philox({seed}ull, step, row, {tag}u).a);\n\
                 const double rest = row % 2 == 0 ? 1.0 - u : pow({shortest:e}, u);\n\
                 A[(I){at} + row * 2] = 1.0 - rest, A[(I){at} + row * 2 + 1] = rest; }}"
            ),
        };
        let _ = writeln!(body, "{line}");
    }
    format!(
        "{preamble}{PHILOX}\nextern \"C\" __global__ void __launch_bounds__(128)\n\
         draw(T *A, const double *betas, const float *samples, const double *state) {{\n\
         wait_for_kernel_before();\n\
         const int row = blockIdx.x * 4 + (threadIdx.x >> 5), lane = threadIdx.x & 31;\n\
         if (row >= {journeys}) return;\n\
         const unsigned long long step = {first_step}ull + (unsigned long long)state[0];\n\
         const auto word = [&](int w) {{\n\
         const Words both = philox({choices_seed}ull, step, row, {tag}u | w >> 1); return w & 1 ? both.b : both.a; }};\n\
         const int pair = {pair};\nconst bool forward = {forward}; (void)forward;\n{body}}}\n"
    )
}
