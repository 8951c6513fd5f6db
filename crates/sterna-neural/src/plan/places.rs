//! Where values live: memory that is free again is used again.

use std::collections::BTreeMap;

use super::{Kernel, Kind, Place, Plan, Planner};
use crate::graph::{Graph, Id};
use crate::op::Op;

impl Planner {
    /// The operation whose storage a value shares.
    pub(super) fn storage_op(&self, id: Id) -> &Op {
        &self.nodes[self.root(id).index()].0
    }

    pub(super) fn root(&self, mut id: Id) -> Id {
        while let Kind::Alias(x) = &self.kinds[id.index()] {
            id = *x;
        }
        id
    }

    pub(super) fn place(&self, graph: &Graph, plan: &mut Plan) {
        let n = self.nodes.len();
        let mut places: Vec<Option<Place>> = vec![None; n];
        let mut constants: BTreeMap<usize, usize> = BTreeMap::new();
        for i in (0..n).filter(|&i| self.alive[i]) {
            let (op, shape) = &self.nodes[i];
            places[i] = match op {
                Op::Input(k) => Some(Place::Input(*k)),
                Op::Parameter(offset) => {
                    plan.parameters = plan.parameters.max(offset + shape.group_len());
                    Some(Place::Parameter(*offset))
                }
                Op::Constant(c) => Some(Place::Constant(*constants.entry(*c).or_insert_with(|| {
                    plan.constants.extend_from_slice(&graph.constant_values(*c));
                    plan.constants.len() - shape.group_len()
                }))),
                Op::RowCount => Some(Place::RowCount),
                _ => None,
            };
        }

        // Outputs first: fixed ones lie one after the other, so that gradients form one vector.
        for (k, &id) in self.outputs.iter().enumerate() {
            let shape = self.shape(id);
            let place = if shape.rows.is_batch() {
                plan.global_units += shape.group_len();
                Place::Global(plan.global_units - shape.group_len())
            } else {
                plan.fixed_len += shape.group_len();
                Place::Fixed(plan.fixed_len - shape.group_len())
            };
            plan.outputs.push((place, shape));
            let root = self.root(id);
            if places[root.index()].is_none() {
                places[root.index()] = Some(place);
            } else {
                plan.copies.push((id, k));
            }
        }

        let uses = self.uses(plan);
        let mut globals = Vec::new();
        for (p, phase) in plan.phases.iter().enumerate() {
            let mut locals = Vec::new();
            let sections = [(&phase.prologue, 0), (&phase.rows, 1), (&phase.sums, 2), (&phase.hosts, 3)];
            for (steps, section) in sections {
                for (s, step) in steps.iter().enumerate() {
                    let results = match &step.kernel {
                        Kernel::Group(members) => members.clone(),
                        Kernel::Pack(_) => vec![],
                        _ => vec![step.out],
                    };
                    for id in results {
                        let used = &uses[id.index()];
                        let here = |u: &Use| (u.phase, u.section, u.step) == (p, section, s);
                        let inside = matches!(step.kernel, Kernel::Group(_)) && used.iter().all(here);
                        if places[id.index()].is_some() || inside {
                            continue;
                        }
                        let units = self.shape(id).group_len();
                        if !self.shape(id).rows.is_batch() {
                            places[id.index()] = Some(Place::Fixed(plan.fixed_len));
                            plan.fixed_len += units.next_multiple_of(16);
                        } else if section == 1 && used.iter().all(|u| (u.phase, u.section) == (p, 1)) {
                            let last = used.iter().map(|u| u.step).max().unwrap_or(s);
                            locals.push((id, units, s, last));
                        } else {
                            let last = used.iter().map(|u| u.phase).max().unwrap_or(p);
                            globals.push((id, units, p, last));
                        }
                    }
                }
            }
            let (offsets, total) = pack_intervals(&locals, 0);
            plan.local_units = plan.local_units.max(total);
            for ((id, ..), offset) in locals.iter().zip(offsets) {
                places[id.index()] = Some(Place::Local(offset));
            }
        }
        let (offsets, total) = pack_intervals(&globals, plan.global_units);
        plan.global_units = total;
        for ((id, ..), offset) in globals.iter().zip(offsets) {
            places[id.index()] = Some(Place::Global(offset));
        }
        for i in (0..n).filter(|&i| self.alive[i]) {
            if matches!(self.kinds[i], Kind::Alias(_)) {
                places[i] = places[self.root(Id(i as u32)).index()];
            }
        }
        plan.places = places;
    }

    /// Which steps read each stored value.
    fn uses(&self, plan: &Plan) -> Vec<Vec<Use>> {
        let mut uses = vec![Vec::new(); self.nodes.len()];
        for (p, phase) in plan.phases.iter().enumerate() {
            let sections = [&phase.prologue, &phase.rows, &phase.sums, &phase.hosts];
            for (section, steps) in sections.into_iter().enumerate() {
                for (step, s) in steps.iter().enumerate() {
                    let read: Vec<Id> = match &s.kernel {
                        Kernel::Group(members) => {
                            members.iter().flat_map(|m| self.kinds[m.index()].inputs()).collect()
                        }
                        Kernel::Pack(_) => vec![s.out],
                        // The packed copy is what the product reads.
                        Kernel::Product { a, init, .. } => [*a].into_iter().chain(*init).collect(),
                        _ => self.kinds[s.out.index()].inputs(),
                    };
                    for id in read {
                        uses[self.root(id).index()].push(Use { phase: p, section, step });
                    }
                }
            }
        }
        for (id, _) in &plan.copies {
            let end = Use { phase: plan.phases.len(), section: 0, step: 0 };
            uses[self.root(*id).index()].push(end);
        }
        uses
    }
}

#[derive(Clone, Copy, Debug)]
struct Use {
    phase: usize,
    section: usize,
    step: usize,
}

/// First-fit offsets for (value, size, first, last) such that values alive together do not overlap.
pub(crate) fn pack_intervals(items: &[(Id, usize, usize, usize)], base: usize) -> (Vec<usize>, usize) {
    let mut placed: Vec<(usize, usize, usize, usize)> = Vec::new(); // offset, size, first, last
    let mut total = base;
    let mut offsets = Vec::with_capacity(items.len());
    for &(_, size, first, last) in items {
        let mut busy: Vec<(usize, usize)> = placed
            .iter()
            .filter(|(_, _, f, l)| *f <= last && first <= *l)
            .map(|(offset, size, ..)| (*offset, offset + size))
            .collect();
        busy.sort_unstable();
        let mut offset = base;
        for (from, to) in busy {
            if offset + size <= from {
                break;
            }
            offset = offset.max(to);
        }
        placed.push((offset, size, first, last));
        total = total.max(offset + size);
        offsets.push(offset);
    }
    (offsets, total)
}
