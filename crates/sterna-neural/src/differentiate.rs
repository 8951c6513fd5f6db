//! Reverse differentiation: walks back from a result and lets each operation emit its rule.

use std::collections::HashMap;

use crate::graph::{Graph, Id, Value};

impl Graph {
    /// ∂(Σ y)/∂x for each x in `wrt`, as new values of this graph.
    ///
    /// Since rows do not mix, the gradient of one column of `y` with respect to a batch input is the
    /// gradient row by row: of a log density it is the score.
    ///
    /// # Panics
    /// If `y` belongs to another graph.
    pub fn gradient<'g>(&'g self, y: Value<'g>, wrt: &[Value<'g>]) -> Vec<Value<'g>> {
        self.pull_back(&[(y, self.scalar(1.0).broadcast(y.shape()))], wrt)
    }

    /// Σᵢ gᵢᵀ · ∂yᵢ/∂x for each x in `wrt`: the gradient with given cotangents gᵢ.
    ///
    /// # Panics
    /// If a value belongs to another graph, or a cotangent has another shape than its value.
    pub fn pull_back<'g>(&'g self, results: &[(Value<'g>, Value<'g>)], wrt: &[Value<'g>]) -> Vec<Value<'g>> {
        let last = results.iter().map(|(y, _)| y.id()).max().expect("at least one result");
        // Which values depend on one of `wrt`: only through them the derivative flows.
        let mut depends = vec![false; last.index() + 1];
        for x in wrt {
            assert!(std::ptr::eq(x.graph(), self), "a value of another graph");
            if x.id() <= last {
                depends[x.id().index()] = true;
            }
        }
        for i in 0..=last.index() {
            depends[i] = depends[i] || self.node(Id(i as u32)).0.inputs().iter().any(|a| depends[a.index()]);
        }

        let mut adjoints: HashMap<Id, Value<'g>> = HashMap::new();
        for &(y, g) in results {
            assert!(std::ptr::eq(y.graph(), self), "a value of another graph");
            assert_eq!(y.shape(), g.shape(), "shape of the cotangent");
            adjoints.entry(y.id()).and_modify(|sum| *sum = *sum + g).or_insert(g);
        }
        for i in (0..=last.index()).rev() {
            let id = Id(i as u32);
            let Some(&g) = adjoints.get(&id).filter(|_| depends[i]) else { continue };
            let op = self.node(id).0;
            for (input, part) in op.inputs().into_iter().zip(op.pull_back(self.value(id), g)) {
                if let Some(part) = part.filter(|_| depends[input.index()]) {
                    adjoints.entry(input).and_modify(|sum| *sum = *sum + part).or_insert(part);
                }
            }
        }
        wrt.iter()
            .map(|x| adjoints.get(&x.id()).copied().unwrap_or_else(|| self.scalar(0.0).broadcast(x.shape())))
            .collect()
    }
}
