//! What Stan calls the numbers that a model declares, `theta.1` and `omega.2.1`, as parameters with axes.

use crate::problem::Parameter;

/// Parameters of a model, and where Stan's numbers belong.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Names {
    /// In the order of their declaration.
    pub parameters: Vec<Parameter>,
    /// For each of Stan's numbers, whose first index changes fastest, its place among those of the parameters, whose last does.
    pub order: Vec<usize>,
}

impl Names {
    /// Reads Stan's list, with commas between.
    pub fn parse(list: &str) -> Self {
        let names: Vec<&str> = list.split(',').filter(|name| !name.is_empty()).collect();
        let mut out = Self::default();
        let mut rest = &names[..];
        while let [first, ..] = rest {
            let base = base(first);
            let (own, others) =
                rest.split_at(rest.iter().take_while(|name| self::base(name) == base).count());
            out.add(base, own);
            rest = others;
        }
        out
    }

    /// Adds all numbers of one name.
    fn add(&mut self, base: &str, names: &[&str]) {
        let first = self.order.len();
        match array(names) {
            Some((shape, places)) => {
                self.parameters.push(Parameter::array(allowed(base), shape).counted_from(1));
                self.order.extend(places.iter().map(|place| first + place));
            }
            // Parts of tuples and of complex numbers.
            None => {
                self.parameters.extend(names.iter().map(|name| Parameter::scalar(allowed(name))));
                self.order.extend(first..first + names.len());
            }
        }
    }
}

fn base(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// The shape of an array and the place of each name in it, if these are all of its places.
fn array(names: &[&str]) -> Option<(Vec<usize>, Vec<usize>)> {
    let index = |part: &str| part.parse::<usize>().ok()?.checked_sub(1);
    let places: Option<Vec<Vec<usize>>> =
        names.iter().map(|name| name.split('.').skip(1).map(index).collect()).collect();
    let places = places?;
    let axes = places.first()?.len();
    if places.iter().any(|place| place.len() != axes) {
        return None;
    }
    let length = |axis: usize| places.iter().map(|place| place[axis] + 1).max().unwrap_or(0);
    let shape: Vec<usize> = (0..axes).map(length).collect();
    let flat = |place: &Vec<usize>| place.iter().zip(&shape).fold(0, |sum, (at, length)| sum * length + at);
    let flat: Vec<usize> = places.iter().map(flat).collect();
    let mut sorted = flat.clone();
    sorted.sort_unstable();
    let all =
        shape.iter().product::<usize>() == names.len() && sorted.iter().enumerate().all(|(i, &at)| i == at);
    all.then_some((shape, flat))
}

/// A name that can be that of a variable in draws.nc.
fn allowed(name: &str) -> String {
    let mut name = name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', "_");
    if ["chain", "draw"].contains(&name.as_str()) {
        name.push('_');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_vectors_and_matrices_are_told_apart() {
        let names = Names::parse("mu,theta.1,theta.2,L.1.1,L.2.1,L.1.2,L.2.2,L.1.3,L.2.3,tau,one.1");
        let all: Vec<String> = names.parameters.iter().flat_map(Parameter::names).collect();
        let expected =
            ["mu", "theta[1]", "theta[2]", "L[1,1]", "L[1,2]", "L[1,3]", "L[2,1]", "L[2,2]", "L[2,3]", "tau"];
        assert_eq!(all[..10], expected);
        assert_eq!(all[10], "one[1]");
        assert_eq!(names.parameters[2].shape, [2, 3]);
        // Stan's third number of L, L[1,2], is the second here.
        assert_eq!(names.order, [0, 1, 2, 3, 6, 4, 7, 5, 8, 9, 10]);
    }

    #[test]
    fn what_is_no_array_has_a_name_for_each_number() {
        let names = Names::parse("z.real,z.imag,t:1,t:2.1,chain,draw.1");
        let all: Vec<String> = names.parameters.iter().flat_map(Parameter::names).collect();
        assert_eq!(all, ["z_real", "z_imag", "t_1", "t_2[1]", "chain_", "draw_[1]"]);
        assert_eq!(names.order, [0, 1, 2, 3, 4, 5]);
        assert_eq!(Names::parse(""), Names::default());
    }
}
