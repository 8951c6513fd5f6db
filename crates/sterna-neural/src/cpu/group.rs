//! Fused elementwise work: a group of values is computed tile by tile, so that what lies between its
//! inputs and its results never leaves the first cache.

use std::collections::HashMap;

use super::simd::{Simd, write};
use crate::Real;
use crate::graph::Id;
use crate::op::{Binary, Op, Rows, Shape, Unary};
use crate::plan::{Place, elementwise_inputs};
use sterna::lanes::{self, leveled};

/// Numbers in a tile.
pub const fn tile_len<T: Real>() -> usize {
    2048 / T::BYTES
}

/// How an operand from memory is repeated over the group's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spread {
    /// Not at all.
    Full,
    /// One row for all rows.
    Row,
    /// One column for all columns.
    Column,
    /// One number.
    Scalar,
}

/// What an instruction does with a, b, c.
#[derive(Clone, Copy, Debug)]
enum Function {
    Unary(Unary),
    /// a·scale + offset.
    Affine(f64, f64),
    Add,
    Sub,
    Mul,
    /// a·b + c.
    MulAdd,
    /// a·b − c.
    MulSub,
    /// c − a·b.
    SubMul,
    Copy,
}

#[derive(Clone, Copy, Debug)]
enum Operand {
    Register(usize),
    /// Position in [`Group::memory`].
    Memory(usize),
}

#[derive(Clone, Copy, Debug)]
struct Instruction {
    f: Function,
    from: [Operand; 3],
    to: Operand,
}

/// A compiled group.
#[derive(Clone, Debug)]
pub struct Group {
    pub shape: Shape,
    code: Vec<Instruction>,
    registers: usize,
    /// Values in memory and how they repeat.
    pub memory: Vec<(Id, Spread)>,
}

impl Group {
    /// Compiles the values `members` (in order), all of one shape.
    pub fn compile(nodes: &[(Op, Shape)], places: &[Option<Place>], members: &[Id]) -> Self {
        let shape = nodes[members[0].index()].1;
        let mut group = Self { shape, code: vec![], registers: 0, memory: vec![] };
        let inside: HashMap<Id, usize> = members.iter().enumerate().map(|(i, id)| (*id, i)).collect();
        let mut uses: HashMap<Id, usize> = HashMap::new();
        for &id in members {
            for input in elementwise_inputs(nodes, id).into_iter().chain(sigmoid_of(nodes, members, id)) {
                *uses.entry(input).or_default() += 1;
            }
        }
        // A product used once, by a sum, becomes one fused multiply-add.
        let product = |id: Id| match nodes[id.index()].0 {
            Op::Binary(Binary::Mul, ..) => {
                inside.contains_key(&id) && uses[&id] == 1 && places[id.index()].is_none()
            }
            _ => false,
        };
        let members = &sigmoids_first(nodes, members);
        let mut fused: Vec<(Id, Function, Vec<Id>)> = Vec::new();
        let mut absorbed = std::collections::HashSet::new();
        for &id in members {
            let mut inputs = elementwise_inputs(nodes, id);
            let (f, inputs) = match &nodes[id.index()].0 {
                Op::Unary(f, _) if sigmoid_of(nodes, members, id).is_some() => {
                    debug_assert_eq!(*f, Unary::Silu);
                    inputs.extend(sigmoid_of(nodes, members, id));
                    (Function::Mul, inputs)
                }
                Op::Unary(f, _) => (Function::Unary(*f), inputs),
                Op::Affine(_, scale, offset) => (Function::Affine((*scale).into(), (*offset).into()), inputs),
                Op::Broadcast(_) => (Function::Copy, inputs),
                Op::Binary(Binary::Mul, ..) => (Function::Mul, inputs),
                Op::Binary(f, ..) => {
                    let (a, b) = (inputs[0], inputs[1]);
                    let add = *f == Binary::Add;
                    if product(b) {
                        absorbed.insert(b);
                        let mut parts = elementwise_inputs(nodes, b);
                        parts.push(a);
                        (if add { Function::MulAdd } else { Function::SubMul }, parts)
                    } else if product(a) {
                        absorbed.insert(a);
                        let mut parts = elementwise_inputs(nodes, a);
                        parts.push(b);
                        (if add { Function::MulAdd } else { Function::MulSub }, parts)
                    } else {
                        (if add { Function::Add } else { Function::Sub }, inputs)
                    }
                }
                other => unreachable!("{other:?} in an elementwise group"),
            };
            fused.push((id, f, inputs));
        }
        fused.retain(|(id, ..)| !absorbed.contains(id));

        let mut last_use: HashMap<Id, usize> = HashMap::new();
        for (i, (_, _, inputs)) in fused.iter().enumerate() {
            for input in inputs {
                last_use.insert(*input, i);
            }
        }
        let mut free: Vec<usize> = Vec::new();
        let mut register: HashMap<Id, usize> = HashMap::new();
        for (i, (id, f, inputs)) in fused.iter().enumerate() {
            let mut from = [Operand::Register(0); 3];
            for (slot, input) in from.iter_mut().zip(inputs) {
                *slot = match register.get(input) {
                    Some(&r) => Operand::Register(r),
                    None => group.in_memory(*input, nodes[input.index()].1),
                };
            }
            // Tiles are read and written vector by vector, so a register may be reused at once.
            for input in inputs {
                if last_use[input] == i
                    && let Some(r) = register.remove(input)
                {
                    free.push(r);
                }
            }
            let to = if places[id.index()].is_some() {
                group.in_memory(*id, shape)
            } else {
                let r = free.pop().unwrap_or_else(|| {
                    group.registers += 1;
                    group.registers - 1
                });
                register.insert(*id, r);
                Operand::Register(r)
            };
            group.code.push(Instruction { f: *f, from, to });
        }
        group
    }

    fn in_memory(&mut self, id: Id, own: Shape) -> Operand {
        let one_row = own.rows == Rows::Fixed(1) && self.shape.rows != Rows::Fixed(1);
        let one_col = own.cols == 1 && self.shape.cols != 1;
        let spread = match (one_row, one_col) {
            (false, false) => Spread::Full,
            (true, false) if self.shape.cols == 1 => Spread::Scalar,
            (true, false) => Spread::Row,
            (false, true) if own.rows == Rows::Fixed(1) => Spread::Scalar,
            (false, true) => Spread::Column,
            (true, true) => Spread::Scalar,
        };
        let position = self.memory.iter().position(|m| *m == (id, spread)).unwrap_or_else(|| {
            self.memory.push((id, spread));
            self.memory.len() - 1
        });
        Operand::Memory(position)
    }

    /// Tiles of scratch that a run needs.
    pub fn scratch_tiles(&self) -> usize {
        self.registers + self.memory.len()
    }
}

/// For silu(x) the member sigmoid(x), if there is one: silu is then a product.
fn sigmoid_of(nodes: &[(Op, Shape)], members: &[Id], id: Id) -> Option<Id> {
    let Op::Unary(Unary::Silu, _) = nodes[id.index()].0 else { return None };
    let x = elementwise_inputs(nodes, id);
    let same = |m: &&Id| {
        matches!(nodes[m.index()].0, Op::Unary(Unary::Sigmoid, _)) && elementwise_inputs(nodes, **m) == x
    };
    members.iter().find(same).copied()
}

/// The members with each sigmoid(x) before silu(x).
fn sigmoids_first(nodes: &[(Op, Shape)], members: &[Id]) -> Vec<Id> {
    let mut order = Vec::with_capacity(members.len());
    for &id in members {
        for id in sigmoid_of(nodes, members, id).into_iter().chain([id]) {
            if !order.contains(&id) {
                order.push(id);
            }
        }
    }
    order
}

/// Where an operand's tile begins, and how far it moves per vector (0 for a repeated number).
#[derive(Clone, Copy, Debug)]
pub struct Cursor<T> {
    /// First number of the whole operand.
    pub base: *mut T,
    /// First number for the present tile.
    at: *mut T,
    step: usize,
}

impl<T> Cursor<T> {
    /// At the first number of the operand.
    pub fn new(base: *mut T) -> Self {
        Self { base, at: base, step: 0 }
    }
}

leveled! {
    /// Computes the group for `rows` rows. `cursors[i].base` points to the first of these rows of memory
    /// operand i; `scratch` holds `scratch_tiles` tiles.
    pub fn run<T: Real>(group: &Group, rows: usize, cursors: &mut [Cursor<T>], scratch: *mut T) = run_with;
}

/// # Safety
/// As for [`run`].
#[inline(always)]
unsafe fn run_with<V: Simd>(
    group: &Group,
    rows: usize,
    cursors: &mut [Cursor<V::Scalar>],
    scratch: *mut V::Scalar,
) {
    let tile = tile_len::<V::Scalar>();
    // SAFETY: within the tiles of scratch and the rows that the caller promised.
    let spread = unsafe { scratch.add(group.registers * tile) };
    let repeated = |s: Spread| group.memory.iter().any(|m| m.1 == s);
    // Without repeated rows or columns the whole matrix is one long row.
    let (rows, cols) = if repeated(Spread::Row) || repeated(Spread::Column) {
        (rows, group.shape.cols)
    } else {
        (1, rows * group.shape.cols)
    };
    let tile_rows = (tile / cols.max(1)).clamp(1, rows.max(1));
    // SAFETY: within the tiles of scratch and the rows that the caller promised.
    unsafe {
        for (i, (_, kind)) in group.memory.iter().enumerate() {
            let own = spread.add(i * tile);
            let cursor = &mut cursors[i];
            cursor.step = V::LANES;
            match kind {
                Spread::Scalar => {
                    V::splat(*cursor.base).write(own);
                    (cursor.at, cursor.step) = (own, 0);
                }
                Spread::Row if tile_rows > 1 => {
                    for r in 0..tile_rows {
                        std::ptr::copy_nonoverlapping(cursor.base, own.add(r * cols), cols);
                    }
                    cursor.at = own;
                }
                _ => {}
            }
        }
    }
    let mut row = 0;
    while row < rows {
        let height = tile_rows.min(rows - row);
        let mut col = 0;
        while col < cols {
            let width = tile.min(cols - col);
            for (i, (_, kind)) in group.memory.iter().enumerate() {
                let cursor = &mut cursors[i];
                // SAFETY: within the tiles of scratch and the rows that the caller promised.
                unsafe {
                    let own = spread.add(i * tile);
                    match kind {
                        Spread::Full => cursor.at = cursor.base.add(row * cols + col),
                        Spread::Row if tile_rows == 1 => cursor.at = cursor.base.add(col),
                        Spread::Column if tile_rows == 1 => {
                            V::splat(*cursor.base.add(row)).write(own);
                            (cursor.at, cursor.step) = (own, 0);
                        }
                        Spread::Column => {
                            for r in 0..height {
                                let x = V::splat(*cursor.base.add(row + r));
                                let mut c = 0;
                                while c < cols {
                                    write(x, own.add(r * cols + c), V::LANES.min(cols - c));
                                    c += V::LANES;
                                }
                            }
                            cursor.at = own;
                        }
                        _ => {}
                    }
                }
            }
            // SAFETY: within the tiles of scratch and the rows that the caller promised.
            unsafe { run_tile::<V>(group, cursors, scratch, height * width) };
            col += width;
        }
        row += height;
    }
}

/// All instructions over one tile of `n` numbers.
///
/// # Safety
/// As for [`run`].
#[inline(always)]
unsafe fn run_tile<V: Simd>(group: &Group, cursors: &[Cursor<V::Scalar>], scratch: *mut V::Scalar, n: usize) {
    let tile = tile_len::<V::Scalar>();
    for instruction in &group.code {
        let at = |operand: Operand| match operand {
            // SAFETY: within the tiles of scratch and the rows that the caller promised.
            Operand::Register(r) => unsafe { (scratch.add(r * tile), V::LANES) },
            Operand::Memory(m) => (cursors[m].at, cursors[m].step),
        };
        let (a, sa) = at(instruction.from[0]);
        let (to, _) = at(instruction.to);
        // Each form runs over whole vectors first and then once over the rest.
        macro_rules! zip {
            (|$x:ident, $y:ident| $body:expr) => {{
                let (b, sb) = at(instruction.from[1]);
                let (mut i, mut a, mut b) = (0, a, b);
                while i + V::LANES <= n {
                    // SAFETY: within the tiles of scratch and the rows that the caller promised.
                    unsafe {
                        let ($x, $y) = (V::read(a), V::read(b));
                        $body.write(to.add(i));
                        (a, b) = (a.add(sa), b.add(sb));
                    }
                    i += V::LANES;
                }
                if i < n {
                    // SAFETY: within the tiles of scratch and the rows that the caller promised.
                    unsafe {
                        let ($x, $y) = (V::read_first(a, n - i), V::read_first(b, n - i));
                        $body.write_first(to.add(i), n - i);
                    }
                }
            }};
            (|$x:ident, $y:ident, $z:ident| $body:expr) => {{
                let (c, sc) = at(instruction.from[2]);
                let (b, sb) = at(instruction.from[1]);
                let (mut i, mut a, mut b, mut c) = (0, a, b, c);
                while i + V::LANES <= n {
                    // SAFETY: within the tiles of scratch and the rows that the caller promised.
                    unsafe {
                        let ($x, $y, $z) = (V::read(a), V::read(b), V::read(c));
                        $body.write(to.add(i));
                        (a, b, c) = (a.add(sa), b.add(sb), c.add(sc));
                    }
                    i += V::LANES;
                }
                if i < n {
                    // SAFETY: within the tiles of scratch and the rows that the caller promised.
                    unsafe {
                        let ($x, $y) = (V::read_first(a, n - i), V::read_first(b, n - i));
                        let $z = V::read_first(c, n - i);
                        $body.write_first(to.add(i), n - i);
                    }
                }
            }};
        }
        macro_rules! map {
            (|$x:ident| $body:expr) => {{
                let (mut i, mut a) = (0, a);
                while i + V::LANES <= n {
                    // SAFETY: within the tiles of scratch and the rows that the caller promised.
                    unsafe {
                        let $x = V::read(a);
                        $body.write(to.add(i));
                        a = a.add(sa);
                    }
                    i += V::LANES;
                }
                if i < n {
                    // SAFETY: within the tiles of scratch and the rows that the caller promised.
                    unsafe {
                        let $x = V::read_first(a, n - i);
                        $body.write_first(to.add(i), n - i);
                    }
                }
            }};
        }
        let zero = V::constant(0.0);
        let one = V::constant(1.0);
        match instruction.f {
            Function::Copy => map!(|x| x),
            Function::Affine(scale, offset) => {
                let (scale, offset) = (V::constant(scale), V::constant(offset));
                map!(|x| x.mul_add(scale, offset))
            }
            Function::Add => zip!(|x, y| x.add(y)),
            Function::Sub => zip!(|x, y| x.sub(y)),
            Function::Mul => zip!(|x, y| x.mul(y)),
            Function::MulAdd => zip!(|x, y, z| x.mul_add(y, z)),
            Function::MulSub => zip!(|x, y, z| x.mul_add(y, zero.sub(z))),
            Function::SubMul => zip!(|x, y, z| zero.sub(x).mul_add(y, z)),
            Function::Unary(f) => match f {
                Unary::Exp => map!(|x| lanes::exp(x)),
                Unary::Log => map!(|x| lanes::ln(x)),
                Unary::Tanh => map!(|x| lanes::tanh(x)),
                Unary::Sigmoid => map!(|x| lanes::sigmoid(x)),
                Unary::Softplus => map!(|x| lanes::softplus(x)),
                Unary::Silu => map!(|x| x.mul(lanes::sigmoid(x))),
                Unary::Sqrt => map!(|x| x.sqrt()),
                Unary::Recip => map!(|x| one.div(x)),
                Unary::Sin => map!(|x| lanes::sin_cos(x).0),
                Unary::Cos => map!(|x| lanes::sin_cos(x).1),
                Unary::Abs => map!(|x| x.abs()),
                Unary::Sign => {
                    map!(|x| V::select_less(zero, x, one, V::select_less(x, zero, zero.sub(one), x)))
                }
                Unary::Step => map!(|x| V::select_less(zero, x, one, zero)),
                Unary::FiniteOrZero => {
                    let infinity = V::constant(f64::INFINITY);
                    map!(|x| V::select_less(x.abs(), infinity, x, zero))
                }
            },
        }
    }
}
