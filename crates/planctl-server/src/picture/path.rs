//! The lines of edges: cut off at the nodes' outlines, smooth between, with a tip.

use super::number;

/// A place.
type Point = (f64, f64);

/// How long a tip is, in pixels.
const TIP: f64 = 9.0;

/// Returns the points of an edge with its ends on the outlines of its nodes.
pub(super) fn clipped(points: &[Point], from: (&[Point], Point), to: (&[Point], Point)) -> Vec<Point> {
    let mut points = points.to_vec();
    let last = points.len().saturating_sub(1);
    if points.len() >= 3 {
        if let Some(end) = crossing(from.0, from.1, points[1]) {
            points[0] = end;
        }
        if let Some(end) = crossing(to.0, to.1, points[last - 1]) {
            points[last] = end;
        }
    }
    points
}

/// Returns where the line from the middle of an outline to a point outside leaves the outline.
fn crossing(outline: &[Point], middle: Point, outside: Point) -> Option<Point> {
    let towards = (outside.0 - middle.0, outside.1 - middle.1);
    let sides = outline.iter().zip(outline.iter().cycle().skip(1));
    let mut best: Option<f64> = None;
    for (a, b) in sides {
        let side = (b.0 - a.0, b.1 - a.1);
        let across = towards.0 * side.1 - towards.1 * side.0;
        if across.abs() < 1e-9 {
            continue;
        }
        let along = (a.0 * side.1 - a.1 * side.0) / across;
        let on_side = (a.0 * towards.1 - a.1 * towards.0) / across;
        let is_hit = (-1e-9..=1.0 + 1e-9).contains(&on_side) && along > 0.0;
        if is_hit && best.is_none_or(|best| along > best) {
            best = Some(along);
        }
    }
    best.map(|along| (middle.0 + towards.0 * along, middle.1 + towards.1 * along))
}

/// Writes the way through the points: smooth and without swinging out where it runs down or up all the way, else with
/// rounded corners.
pub(super) fn smooth(points: &[Point]) -> String {
    let Some(first) = points.first() else { return String::new() };
    let mut text = format!("M{} {}", number(first.0), number(first.1));
    let heights: Vec<f64> = points.windows(2).map(|pair| pair[1].1 - pair[0].1).collect();
    let runs_one_way = heights.iter().all(|step| *step > 1.0) || heights.iter().all(|step| *step < -1.0);
    if runs_one_way {
        let slopes = slopes(points);
        for (index, pair) in points.windows(2).enumerate() {
            let third = (pair[1].1 - pair[0].1) / 3.0;
            let (from, to) = (slopes[index], slopes[index + 1]);
            text.push_str(&format!(
                "C{} {} {} {} {} {}",
                number(pair[0].0 + from * third),
                number(pair[0].1 + third),
                number(pair[1].0 - to * third),
                number(pair[1].1 - third),
                number(pair[1].0),
                number(pair[1].1)
            ));
        }
        return text;
    }
    for corner in points.windows(3) {
        let (before, at, after) = (corner[0], corner[1], corner[2]);
        let (enter, leave) = (point_towards(at, before, 12.0), point_towards(at, after, 12.0));
        text.push_str(&format!(
            "L{} {}Q{} {} {} {}",
            number(enter.0),
            number(enter.1),
            number(at.0),
            number(at.1),
            number(leave.0),
            number(leave.1)
        ));
    }
    if let Some(last) = points.last() {
        text.push_str(&format!("L{} {}", number(last.0), number(last.1)));
    }
    text
}

/// Returns how far sideways the way runs for each pixel downwards at each point, bounded so that it never swings out
/// (Fritsch and Carlson; x as a function of y).
fn slopes(points: &[Point]) -> Vec<f64> {
    let secants: Vec<f64> =
        points.windows(2).map(|pair| (pair[1].0 - pair[0].0) / (pair[1].1 - pair[0].1)).collect();
    let mut slopes = Vec::with_capacity(points.len());
    for index in 0..points.len() {
        let before = index.checked_sub(1).and_then(|before| secants.get(before)).copied();
        let slope = match (before, secants.get(index).copied()) {
            (Some(before), Some(after)) if before * after > 0.0 => 2.0 * before * after / (before + after),
            (Some(_), Some(_)) => 0.0,
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => 0.0,
        };
        slopes.push(slope);
    }
    slopes
}

/// Returns the point that lies so far from one towards another, half-way at most.
fn point_towards(from: Point, to: Point, distance: f64) -> Point {
    let length = (to.0 - from.0).hypot(to.1 - from.1);
    let part = if length < 1e-9 { 0.0 } else { (distance / length).min(0.5) };
    (from.0 + (to.0 - from.0) * part, from.1 + (to.1 - from.1) * part)
}

/// Writes the tip at the end of a way.
pub(super) fn arrow_head(points: &[Point]) -> String {
    let [.., before, end] = points else { return String::new() };
    let length = (end.0 - before.0).hypot(end.1 - before.1).max(1e-9);
    let (dx, dy) = ((end.0 - before.0) / length, (end.1 - before.1) / length);
    let back = (end.0 - dx * TIP, end.1 - dy * TIP);
    let half = TIP * 0.42;
    format!(
        "M{} {}L{} {}L{} {}Z",
        number(end.0),
        number(end.1),
        number(back.0 - dy * half),
        number(back.1 + dx * half),
        number(back.0 + dy * half),
        number(back.1 - dx * half)
    )
}
