//! Right and wrong programs, each with the verdict that the specification gives.
//!
//! The same list is held against the simulated driver and against the validation layer.

use ash::vk;
use vk::{AccessFlags2 as Access, ImageLayout as Layout, PipelineStageFlags2 as Stages};

use super::fixture::{A, B, Bar, Buffer, C, Draw, Form, Op, Part};
use Op::{Again, Blit, Clear, Copy, Fill, FromImage, Idle, Submit, ToImage, Update};

/// A program, and what is to be found in it.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) ops: Vec<Op>,
    /// The rule that it breaks.
    pub(crate) breaks: Option<&'static str>,
    /// In which forms version 1.3.239 of the layer says otherwise, and why.
    layer_differs: Option<(&'static [Form], &'static str)>,
}

const RAW: &str = "SYNC-HAZARD-READ-AFTER-WRITE";
const WAR: &str = "SYNC-HAZARD-WRITE-AFTER-READ";
const WAW: &str = "SYNC-HAZARD-WRITE-AFTER-WRITE";

const T: Stages = Stages::ALL_TRANSFER;
const COMPUTE: Stages = Stages::COMPUTE_SHADER;
const FRAGMENT: Stages = Stages::FRAGMENT_SHADER;
const VERTEX: Stages = Stages::VERTEX_SHADER;
const ALL: Stages = Stages::ALL_COMMANDS;
const TOP: Stages = Stages::TOP_OF_PIPE;
const BOTTOM: Stages = Stages::BOTTOM_OF_PIPE;
const NO: Access = Access::NONE;
const R: Access = Access::TRANSFER_READ;
const W: Access = Access::TRANSFER_WRITE;

const SRC: Layout = Layout::TRANSFER_SRC_OPTIMAL;
const DST: Layout = Layout::TRANSFER_DST_OPTIMAL;

/// Levels and layers.
const WHOLE: Part = Part { levels: (0, 2), layers: (0, 2) };
const FIRST: Part = Part { levels: (0, 1), layers: (0, 2) };
const SECOND: Part = Part { levels: (1, 1), layers: (0, 2) };
const CORNER: Part = Part { levels: (0, 1), layers: (0, 1) };
const BESIDE: Part = Part { levels: (0, 1), layers: (1, 1) };

fn memory(src: (Stages, Access), dst: (Stages, Access)) -> Op {
    Op::Barrier(vec![Bar::memory(src, dst)])
}

fn on(buffer: Buffer, range: (u64, u64), src: (Stages, Access), dst: (Stages, Access)) -> Op {
    Op::Barrier(vec![Bar::buffer(buffer, range, src, dst)])
}

fn image(part: Part, layouts: (Layout, Layout), src: (Stages, Access), dst: (Stages, Access)) -> Op {
    Op::Barrier(vec![Bar::image(part, layouts, src, dst)])
}

/// The image becomes something to copy to.
fn fresh() -> Op {
    image(WHOLE, (Layout::UNDEFINED, DST), (TOP, NO), (T, W))
}

/// All 256 bytes.
const ALL_BYTES: (u64, u64) = (0, 256);
const LEFT: (i32, u32) = (0, 8);
const RIGHT: (i32, u32) = (8, 8);
const MIDDLE: (i32, u32) = (4, 8);
const ENTIRE: (i32, u32) = (0, 16);

fn fill(buffer: Buffer) -> Op {
    Fill(buffer, ALL_BYTES)
}

fn copy(from: Buffer, to: Buffer) -> Op {
    Copy(from, to, ALL_BYTES)
}

fn good(name: &'static str, ops: Vec<Op>) -> Program {
    Program { name, ops, breaks: None, layer_differs: None }
}

fn bad(name: &'static str, breaks: &'static str, ops: Vec<Op>) -> Program {
    Program { name, ops, breaks: Some(breaks), layer_differs: None }
}

impl Program {
    fn differs(mut self, on: &'static [Form], why: &'static str) -> Self {
        self.layer_differs = Some((on, why));
        self
    }

    /// Why the layer says otherwise, if it does.
    pub(crate) fn layer_differs_on(&self, form: Form) -> Option<&'static str> {
        self.layer_differs.filter(|(forms, _)| forms.contains(&form)).map(|(_, why)| why)
    }
}

const BOTH: &[Form] = &[Form::First, Form::Second];
const ONE_COMMAND_BUFFER: &str = "this version looks at one command buffer at a time";
const RESOURCE_ONLY: &str =
    "this version takes the barrier of a resource for an order of that resource alone";

const UNFOLLOWED: &str = "this version follows attachments of render passes alone";

pub(crate) fn programs() -> Vec<Program> {
    let mut all = buffers();
    all.extend(ranges());
    all.extend(chains());
    all.extend(images());
    all.extend(blits());
    all.extend(draws());
    all.extend(events());
    all.extend(submissions());
    all
}

fn buffers() -> Vec<Program> {
    vec![
        bad("a read after a write", RAW, vec![fill(A), copy(A, B)]),
        good("a read after a write, with a barrier", vec![fill(A), memory((T, W), (T, R)), copy(A, B)]),
        bad("a read after a write, execution only", RAW, vec![fill(A), memory((T, NO), (T, NO)), copy(A, B)]),
        bad(
            "a read after a write that is not made available",
            RAW,
            vec![fill(A), memory((T, R), (T, R)), copy(A, B)],
        ),
        bad(
            "a read after a write that is made visible to writes",
            RAW,
            vec![fill(A), memory((T, W), (T, W)), copy(A, B)],
        ),
        bad(
            "a read after a write, another first stage",
            RAW,
            vec![fill(A), memory((COMPUTE, Access::SHADER_WRITE), (T, R)), copy(A, B)],
        ),
        bad(
            "a read after a write, another second stage",
            RAW,
            vec![fill(A), memory((T, W), (COMPUTE, Access::SHADER_READ)), copy(A, B)],
        ),
        good(
            "a read after a write, everything before everything",
            vec![fill(A), memory((ALL, Access::MEMORY_WRITE), (ALL, Access::MEMORY_READ)), copy(A, B)],
        ),
        bad(
            "a read after a write, all stages and no access",
            RAW,
            vec![fill(A), memory((ALL, NO), (ALL, NO)), copy(A, B)],
        ),
        bad("a read after a write, from the top", RAW, vec![fill(A), memory((TOP, NO), (T, R)), copy(A, B)]),
        bad(
            "a read after a write, to the bottom",
            RAW,
            vec![fill(A), memory((T, W), (BOTTOM, NO)), copy(A, B)],
        ),
        bad("a write after a read", WAR, vec![copy(A, B), fill(A)]),
        good("a write after a read, execution only", vec![copy(A, B), memory((T, NO), (T, NO)), fill(A)]),
        good(
            "a write after a read, from the bottom to the top",
            vec![copy(A, B), memory((BOTTOM, NO), (TOP, NO)), fill(A)],
        ),
        bad(
            "a write after a read, another first stage",
            WAR,
            vec![copy(A, B), memory((FRAGMENT, NO), (T, NO)), fill(A)],
        ),
        bad(
            "a write after a read, another second stage",
            WAR,
            vec![copy(A, B), memory((T, NO), (COMPUTE, NO)), fill(A)],
        ),
        bad(
            "a write after two reads, one of them ordered",
            WAR,
            vec![copy(A, B), memory((T, NO), (T, NO)), copy(A, C), fill(A)],
        ),
        bad("a write after a write", WAW, vec![fill(A), fill(A)]),
        good("a write after a write, with a barrier", vec![fill(A), memory((T, W), (T, W)), fill(A)]),
        bad("a write after a write, execution only", WAW, vec![fill(A), memory((T, NO), (T, NO)), fill(A)]),
        bad(
            "a write after a write, made visible to reads",
            WAW,
            vec![fill(A), memory((T, W), (T, R)), fill(A)],
        ),
        good(
            "a write after a read of a write, execution only behind",
            vec![fill(A), memory((T, W), (T, R)), copy(A, B), memory((T, NO), (T, NO)), fill(A)],
        ),
        good("two reads", vec![copy(A, B), copy(A, C)]),
        good("two reads after a write", vec![fill(A), memory((T, W), (T, R)), copy(A, B), copy(A, C)]),
        bad("a read of an update", RAW, vec![Update(A, ALL_BYTES), copy(A, B)]),
        good(
            "a read of an update, with a barrier",
            vec![Update(A, ALL_BYTES), memory((T, W), (T, R)), copy(A, B)],
        ),
        bad("copies in a row", RAW, vec![copy(A, B), copy(B, C)]),
        good("copies in a row, with a barrier", vec![copy(A, B), memory((T, W), (T, R)), copy(B, C)]),
    ]
}

fn ranges() -> Vec<Program> {
    vec![
        good("writes side by side", vec![Fill(A, (0, 64)), Fill(A, (64, 64))]),
        bad("writes that share four bytes", WAW, vec![Fill(A, (0, 64)), Fill(A, (60, 64))]),
        good("a read beside a write", vec![Fill(A, (0, 64)), Copy(A, B, (64, 64))]),
        good("a buffer's barrier", vec![fill(A), on(A, ALL_BYTES, (T, W), (T, R)), copy(A, B)]),
        bad(
            "a buffer's barrier of half the bytes",
            RAW,
            vec![fill(A), on(A, (0, 128), (T, W), (T, R)), copy(A, B)],
        ),
        good(
            "a buffer's barrier of the half that is read",
            vec![fill(A), on(A, (128, 128), (T, W), (T, R)), Copy(A, B, (128, 128))],
        ),
        bad(
            "a barrier of another buffer",
            RAW,
            vec![fill(A), fill(B), on(B, ALL_BYTES, (T, W), (T, R)), copy(A, C)],
        ),
        good(
            "a barrier of another buffer orders execution",
            vec![copy(A, B), on(C, ALL_BYTES, (T, W), (T, W)), fill(A)],
        )
        .differs(&[Form::Second], RESOURCE_ONLY),
    ]
}

fn chains() -> Vec<Program> {
    let shader = Access::SHADER_READ;
    vec![
        good(
            "a chain of execution",
            vec![copy(A, B), memory((T, NO), (COMPUTE, NO)), memory((COMPUTE, NO), (T, NO)), fill(A)],
        ),
        bad(
            "a chain with a gap",
            WAR,
            vec![copy(A, B), memory((T, NO), (COMPUTE, NO)), memory((FRAGMENT, NO), (T, NO)), fill(A)],
        ),
        good(
            "a write made available, and visible later",
            vec![fill(A), memory((T, W), (COMPUTE, shader)), memory((COMPUTE, NO), (T, R)), copy(A, B)],
        ),
        bad(
            "a write made available, and visible to others alone",
            RAW,
            vec![fill(A), memory((T, W), (COMPUTE, shader)), memory((COMPUTE, NO), (T, NO)), copy(A, B)],
        ),
        bad(
            "a write made visible, and available too late",
            RAW,
            vec![
                fill(A),
                memory((T, NO), (COMPUTE, NO)),
                memory((COMPUTE, Access::SHADER_WRITE), (T, R)),
                copy(A, B),
            ],
        ),
        bad(
            "a write made available, and another buffer made visible",
            RAW,
            vec![
                fill(A),
                memory((T, W), (COMPUTE, shader)),
                on(B, ALL_BYTES, (COMPUTE, NO), (T, R)),
                copy(A, C),
            ],
        ),
        good(
            "a chain through later stages of a draw",
            vec![fill(A), memory((T, W), (VERTEX, shader)), memory((FRAGMENT, NO), (T, R)), copy(A, B)],
        ),
        bad(
            "no chain through earlier stages of a draw",
            RAW,
            vec![fill(A), memory((T, W), (FRAGMENT, shader)), memory((VERTEX, NO), (T, R)), copy(A, B)],
        ),
    ]
}

fn images() -> Vec<Program> {
    let to_source = |part, src, dst| image(part, (DST, SRC), src, dst);
    vec![
        good("a fresh image", vec![fresh(), Clear(WHOLE)]),
        bad(
            "a fresh image for another stage",
            WAW,
            vec![
                image(WHOLE, (Layout::UNDEFINED, DST), (TOP, NO), (COMPUTE, Access::SHADER_WRITE)),
                Clear(WHOLE),
            ],
        ),
        bad("a clear twice", WAW, vec![fresh(), Clear(WHOLE), Clear(WHOLE)]),
        good("clears of two levels", vec![fresh(), Clear(FIRST), Clear(SECOND)]),
        bad(
            "a barrier of another level",
            WAW,
            vec![fresh(), Clear(FIRST), image(SECOND, (DST, DST), (T, W), (T, W)), Clear(FIRST)],
        ),
        bad(
            "a barrier of another layer",
            WAW,
            vec![fresh(), Clear(CORNER), image(BESIDE, (DST, DST), (T, W), (T, W)), Clear(CORNER)],
        ),
        good(
            "an image's barrier",
            vec![fresh(), Clear(WHOLE), to_source(WHOLE, (T, W), (T, R)), FromImage(B, CORNER, SRC)],
        ),
        bad(
            "a change of layout of what is not available",
            WAW,
            vec![fresh(), Clear(WHOLE), to_source(WHOLE, (T, NO), (T, R)), FromImage(B, CORNER, SRC)],
        ),
        bad(
            "a change of layout that waits for another stage",
            WAW,
            vec![fresh(), Clear(WHOLE), to_source(WHOLE, (COMPUTE, Access::SHADER_WRITE), (T, R))],
        ),
        bad(
            "a change of layout that nothing waits for",
            RAW,
            vec![
                fresh(),
                Clear(WHOLE),
                to_source(WHOLE, (T, W), (COMPUTE, Access::SHADER_READ)),
                FromImage(B, CORNER, SRC),
            ],
        ),
        bad(
            "a change of layout while it is read",
            WAR,
            vec![
                image(WHOLE, (Layout::UNDEFINED, SRC), (TOP, NO), (T, R)),
                FromImage(B, CORNER, SRC),
                image(WHOLE, (SRC, DST), (COMPUTE, NO), (T, W)),
            ],
        ),
        bad(
            "reads with a change of layout between them",
            RAW,
            vec![
                image(WHOLE, (Layout::UNDEFINED, SRC), (TOP, NO), (T, R)),
                FromImage(B, CORNER, SRC),
                image(WHOLE, (SRC, Layout::GENERAL), (T, NO), (COMPUTE, Access::SHADER_READ)),
                FromImage(C, CORNER, Layout::GENERAL),
            ],
        ),
        good(
            "reads with a change of layout between them, for the second",
            vec![
                image(WHOLE, (Layout::UNDEFINED, SRC), (TOP, NO), (T, R)),
                FromImage(B, CORNER, SRC),
                image(WHOLE, (SRC, Layout::GENERAL), (T, NO), (T, R)),
                FromImage(C, CORNER, Layout::GENERAL),
            ],
        ),
        good(
            "an image's write after a read, execution only",
            vec![
                image(WHOLE, (Layout::UNDEFINED, Layout::GENERAL), (TOP, NO), (T, R | W)),
                FromImage(B, CORNER, Layout::GENERAL),
                image(WHOLE, (Layout::GENERAL, Layout::GENERAL), (T, NO), (T, NO)),
                ToImage(C, CORNER, Layout::GENERAL, ENTIRE),
            ],
        ),
        bad(
            "an image's write after a read",
            WAR,
            vec![
                image(WHOLE, (Layout::UNDEFINED, Layout::GENERAL), (TOP, NO), (T, R | W)),
                FromImage(B, CORNER, Layout::GENERAL),
                ToImage(C, CORNER, Layout::GENERAL, ENTIRE),
            ],
        ),
        good(
            "copies to two halves of a level",
            vec![fresh(), ToImage(A, CORNER, DST, LEFT), ToImage(A, CORNER, DST, RIGHT)],
        ),
        bad(
            "copies to parts of a level that overlap",
            WAW,
            vec![fresh(), ToImage(A, CORNER, DST, LEFT), ToImage(A, CORNER, DST, MIDDLE)],
        ),
        bad(
            "a buffer that is filled and copied to an image",
            RAW,
            vec![fresh(), fill(A), ToImage(A, CORNER, DST, ENTIRE)],
        ),
        bad(
            "a buffer that is copied from an image, and read",
            RAW,
            vec![
                image(WHOLE, (Layout::UNDEFINED, SRC), (TOP, NO), (T, R)),
                FromImage(B, CORNER, SRC),
                copy(B, C),
            ],
        ),
    ]
}

fn blits() -> Vec<Program> {
    let begin = image(WHOLE, (Layout::UNDEFINED, Layout::GENERAL), (TOP, NO), (T, R | W));
    let up = ToImage(A, CORNER, Layout::GENERAL, ENTIRE);
    let halve = Blit(CORNER, Layout::GENERAL, Layout::GENERAL);
    let program = |ops: &[&Op]| std::iter::once(&begin).chain(ops.iter().copied()).cloned().collect();
    let write_to_read = memory((T, W), (T, R));
    vec![
        good("a level is halved", program(&[&up, &write_to_read, &halve])),
        good(
            "a level is halved, with layouts",
            vec![fresh(), Clear(FIRST), image(FIRST, (DST, SRC), (T, W), (T, R)), Blit(CORNER, SRC, DST)],
        ),
        bad("a level is halved too early", RAW, program(&[&up, &halve])),
        bad("a level is halved after another stage", RAW, {
            program(&[&up, &memory((COMPUTE, Access::SHADER_WRITE), (T, R)), &halve])
        }),
        bad("a level is halved twice", WAW, program(&[&halve, &halve])),
        bad("what is halved is written too early", WAR, program(&[&halve, &up])),
        good("what is halved is written after it", program(&[&halve, &memory((T, NO), (T, NO)), &up])),
    ]
}

fn draws() -> Vec<Program> {
    use Draw::{Indexed, Indirect, Plain};
    const ATTACHED: Layout = Layout::COLOR_ATTACHMENT_OPTIMAL;
    const OUTPUT: Stages = Stages::COLOR_ATTACHMENT_OUTPUT;
    const DRAWN: (Stages, Access) = (OUTPUT, Access::COLOR_ATTACHMENT_WRITE);
    const FETCH: Stages = Stages::VERTEX_INPUT;
    // Everything is defined, and over.
    let begin = [
        image(CORNER, (Layout::UNDEFINED, ATTACHED), (TOP, NO), DRAWN),
        fill(A),
        fill(B),
        fill(C),
        Submit,
        Idle,
    ];
    let program = |ops: &[Op]| begin.iter().chain(ops).cloned().collect::<Vec<_>>();
    let render = |draws: &[Draw]| Op::Render(draws.to_vec());
    let vertices = (FETCH, Access::VERTEX_ATTRIBUTE_READ);
    let indices = (FETCH, Access::INDEX_READ);
    let numbers = (Stages::DRAW_INDIRECT, Access::INDIRECT_COMMAND_READ);
    let mut all = Vec::new();
    for (draw, buffer, reads, names) in [
        (
            Plain,
            A,
            vertices,
            ["vertices", "vertices too early", "vertices for shaders", "vertices written too early"],
        ),
        (
            Indexed,
            B,
            indices,
            ["indices", "indices too early", "indices for shaders", "indices written too early"],
        ),
        (
            Indirect,
            C,
            numbers,
            ["commands", "commands too early", "commands for shaders", "commands written too early"],
        ),
    ] {
        let [right, early, shaders, written] = names;
        let draw = render(&[draw]);
        all.push(good(right, program(&[fill(buffer), memory((T, W), reads), draw.clone()])));
        all.push(bad(early, RAW, program(&[fill(buffer), draw.clone()])));
        let elsewhere = memory((T, W), (VERTEX, Access::SHADER_READ));
        all.push(bad(shaders, RAW, program(&[fill(buffer), elsewhere, draw.clone()])));
        all.push(bad(written, WAR, program(&[draw, fill(buffer)])));
    }
    let behind = memory((FETCH, NO), (T, NO));
    let away = image(CORNER, (ATTACHED, SRC), DRAWN, (T, R));
    let unmade = image(CORNER, (ATTACHED, SRC), (OUTPUT, NO), (T, R));
    all.extend([
        good("vertices are written behind the draw", program(&[render(&[Plain]), behind, fill(A)])),
        good("vertices that are not drawn", program(&[Fill(A, (12, 244)), render(&[Plain])])),
        good("indices that are not drawn", program(&[Fill(B, (8, 248)), render(&[Indexed])])),
        good("one draw after another", program(&[render(&[Plain, Indexed, Plain])])),
        good("what is drawn is copied", program(&[render(&[Plain]), away, FromImage(B, CORNER, SRC)])),
        bad("what is drawn is copied too early", WAW, program(&[render(&[Plain]), unmade]))
            .differs(&[Form::Second], UNFOLLOWED),
        bad("rendering twice", WAW, program(&[render(&[Plain]), render(&[Plain])]))
            .differs(BOTH, "this version takes two passes for one, or follows no attachments"),
        good("rendering twice, in order", program(&[render(&[]), memory(DRAWN, DRAWN), render(&[Plain])])),
    ]);
    all
}

fn events() -> Vec<Program> {
    let halves = |src, dst| (Op::Set(vec![Bar::memory(src, dst)]), Op::Wait(vec![Bar::memory(src, dst)]));
    let between = |before: Op, (set, wait): (Op, Op), after: Op| vec![before, set, wait, after];
    let behind = |before: Op, (set, wait): (Op, Op), after: Op| vec![set, before, wait, after];
    let all = |old, new| {
        let bar = vec![Bar::image(WHOLE, (old, new), (T, W), (T, R))];
        (Op::Set(bar.clone()), Op::Wait(bar))
    };
    let (set, wait) = all(DST, SRC);
    vec![
        good("an event", between(fill(A), halves((T, W), (T, R)), copy(A, B))),
        bad("an event, execution only", RAW, between(fill(A), halves((T, NO), (T, NO)), copy(A, B))),
        bad(
            "an event after another stage",
            RAW,
            between(fill(A), halves((COMPUTE, Access::SHADER_WRITE), (T, R)), copy(A, B)),
        ),
        bad("a write behind the event", RAW, behind(fill(A), halves((T, W), (T, R)), copy(A, B))),
        good("a write after a read, by an event", between(copy(A, B), halves((T, NO), (T, NO)), fill(A))),
        bad("a read behind the event", WAR, behind(copy(A, B), halves((T, NO), (T, NO)), fill(A))),
        good(
            "a change of layout by an event",
            vec![fresh(), Clear(WHOLE), set, wait, FromImage(B, CORNER, SRC)],
        ),
    ]
}

fn submissions() -> Vec<Program> {
    vec![
        bad("a read after a write of the submission before", RAW, vec![fill(A), Submit, copy(A, B)])
            .differs(BOTH, ONE_COMMAND_BUFFER),
        bad(
            "a barrier too narrow, for the submission before",
            RAW,
            vec![fill(A), Submit, memory((T, NO), (T, NO)), copy(A, B)],
        )
        .differs(BOTH, ONE_COMMAND_BUFFER),
        good(
            "a barrier for the submission before",
            vec![fill(A), Submit, memory((T, W), (T, R)), copy(A, B)],
        ),
        good(
            "a barrier at the end of the submission before",
            vec![fill(A), memory((T, W), (T, R)), Submit, copy(A, B)],
        ),
        bad("a read after a write of the command buffer before", RAW, vec![fill(A), Again, copy(A, B)])
            .differs(BOTH, ONE_COMMAND_BUFFER),
        good("the host waits between two submissions", vec![fill(A), Submit, Idle, copy(A, B)]),
    ]
}
