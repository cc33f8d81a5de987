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

const GOOD: Option<&str> = None;
const RAW: Option<&str> = Some("SYNC-HAZARD-READ-AFTER-WRITE");
const WAR: Option<&str> = Some("SYNC-HAZARD-WRITE-AFTER-READ");
const WAW: Option<&str> = Some("SYNC-HAZARD-WRITE-AFTER-WRITE");

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

impl Program {
    /// Why the layer says otherwise, if it does.
    pub(crate) fn layer_differs_on(&self, form: Form) -> Option<&'static str> {
        self.layer_differs.filter(|(forms, _)| forms.contains(&form)).map(|(_, why)| why)
    }
}

const SECOND_FORM: &[Form] = &[Form::Second];
const BOTH: &[Form] = &[Form::First, Form::Second];
const ONE_COMMAND_BUFFER: &str = "this version looks at one command buffer at a time";
const RESOURCE_ONLY: &str =
    "this version takes the barrier of a resource for an order of that resource alone";
const ONE_PASS: &str = "this version takes two passes for one, or follows no attachments";
const UNFOLLOWED: &str = "this version follows attachments of render passes alone";

/// Programs, one a row: the rule that it breaks, its name and its steps. Behind them, the forms in which the layer says
/// otherwise, and why.
macro_rules! programs {
    ($($breaks:ident $name:tt: $ops:expr $(, $forms:ident $why:ident)?;)*) => {
        vec![$(Program {
            name: $name,
            ops: Vec::from($ops),
            breaks: $breaks,
            layer_differs: None$(.or(Some(($forms, $why))))?,
        }),*]
    };
}

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
    programs! {
        RAW "a read after a write": [fill(A), copy(A, B)];
        GOOD "a read after a write, with a barrier": [fill(A), memory((T, W), (T, R)), copy(A, B)];
        RAW "a read after a write, execution only": [fill(A), memory((T, NO), (T, NO)), copy(A, B)];
        RAW "a read after a write that is not made available": [fill(A), memory((T, R), (T, R)), copy(A, B)];
        RAW "a read after a write that is made visible to writes": [fill(A), memory((T, W), (T, W)), copy(A, B)];
        RAW "a read after a write, another first stage":
            [fill(A), memory((COMPUTE, Access::SHADER_WRITE), (T, R)), copy(A, B)];
        RAW "a read after a write, another second stage":
            [fill(A), memory((T, W), (COMPUTE, Access::SHADER_READ)), copy(A, B)];
        GOOD "a read after a write, everything before everything":
            [fill(A), memory((ALL, Access::MEMORY_WRITE), (ALL, Access::MEMORY_READ)), copy(A, B)];
        RAW "a read after a write, all stages and no access": [fill(A), memory((ALL, NO), (ALL, NO)), copy(A, B)];
        RAW "a read after a write, from the top": [fill(A), memory((TOP, NO), (T, R)), copy(A, B)];
        RAW "a read after a write, to the bottom": [fill(A), memory((T, W), (BOTTOM, NO)), copy(A, B)];
        WAR "a write after a read": [copy(A, B), fill(A)];
        GOOD "a write after a read, execution only": [copy(A, B), memory((T, NO), (T, NO)), fill(A)];
        GOOD "a write after a read, from the bottom to the top": [copy(A, B), memory((BOTTOM, NO), (TOP, NO)), fill(A)];
        WAR "a write after a read, another first stage": [copy(A, B), memory((FRAGMENT, NO), (T, NO)), fill(A)];
        WAR "a write after a read, another second stage": [copy(A, B), memory((T, NO), (COMPUTE, NO)), fill(A)];
        WAR "a write after two reads, one of them ordered": [copy(A, B), memory((T, NO), (T, NO)), copy(A, C), fill(A)];
        WAW "a write after a write": [fill(A), fill(A)];
        GOOD "a write after a write, with a barrier": [fill(A), memory((T, W), (T, W)), fill(A)];
        WAW "a write after a write, execution only": [fill(A), memory((T, NO), (T, NO)), fill(A)];
        WAW "a write after a write, made visible to reads": [fill(A), memory((T, W), (T, R)), fill(A)];
        GOOD "a write after a read of a write, execution only behind":
            [fill(A), memory((T, W), (T, R)), copy(A, B), memory((T, NO), (T, NO)), fill(A)];
        GOOD "two reads": [copy(A, B), copy(A, C)];
        GOOD "two reads after a write": [fill(A), memory((T, W), (T, R)), copy(A, B), copy(A, C)];
        RAW "a read of an update": [Update(A, ALL_BYTES), copy(A, B)];
        GOOD "a read of an update, with a barrier": [Update(A, ALL_BYTES), memory((T, W), (T, R)), copy(A, B)];
        RAW "copies in a row": [copy(A, B), copy(B, C)];
        GOOD "copies in a row, with a barrier": [copy(A, B), memory((T, W), (T, R)), copy(B, C)];
    }
}

fn ranges() -> Vec<Program> {
    programs! {
        GOOD "writes side by side": [Fill(A, (0, 64)), Fill(A, (64, 64))];
        WAW "writes that share four bytes": [Fill(A, (0, 64)), Fill(A, (60, 64))];
        GOOD "a read beside a write": [Fill(A, (0, 64)), Copy(A, B, (64, 64))];
        GOOD "a buffer's barrier": [fill(A), on(A, ALL_BYTES, (T, W), (T, R)), copy(A, B)];
        RAW "a buffer's barrier of half the bytes": [fill(A), on(A, (0, 128), (T, W), (T, R)), copy(A, B)];
        GOOD "a buffer's barrier of the half that is read":
            [fill(A), on(A, (128, 128), (T, W), (T, R)), Copy(A, B, (128, 128))];
        RAW "a barrier of another buffer": [fill(A), fill(B), on(B, ALL_BYTES, (T, W), (T, R)), copy(A, C)];
        GOOD "a barrier of another buffer orders execution":
            [copy(A, B), on(C, ALL_BYTES, (T, W), (T, W)), fill(A)], SECOND_FORM RESOURCE_ONLY;
    }
}

fn chains() -> Vec<Program> {
    let shader = Access::SHADER_READ;
    programs! {
        GOOD "a chain of execution":
            [copy(A, B), memory((T, NO), (COMPUTE, NO)), memory((COMPUTE, NO), (T, NO)), fill(A)];
        WAR "a chain with a gap":
            [copy(A, B), memory((T, NO), (COMPUTE, NO)), memory((FRAGMENT, NO), (T, NO)), fill(A)];
        GOOD "a write made available, and visible later":
            [fill(A), memory((T, W), (COMPUTE, shader)), memory((COMPUTE, NO), (T, R)), copy(A, B)];
        RAW "a write made available, and visible to others alone":
            [fill(A), memory((T, W), (COMPUTE, shader)), memory((COMPUTE, NO), (T, NO)), copy(A, B)];
        RAW "a write made visible, and available too late":
            [fill(A), memory((T, NO), (COMPUTE, NO)), memory((COMPUTE, Access::SHADER_WRITE), (T, R)), copy(A, B)];
        RAW "a write made available, and another buffer made visible":
            [fill(A), memory((T, W), (COMPUTE, shader)), on(B, ALL_BYTES, (COMPUTE, NO), (T, R)), copy(A, C)];
        GOOD "a chain through later stages of a draw":
            [fill(A), memory((T, W), (VERTEX, shader)), memory((FRAGMENT, NO), (T, R)), copy(A, B)];
        RAW "no chain through earlier stages of a draw":
            [fill(A), memory((T, W), (FRAGMENT, shader)), memory((VERTEX, NO), (T, R)), copy(A, B)];
    }
}

fn images() -> Vec<Program> {
    let to_source = |part, src, dst| image(part, (DST, SRC), src, dst);
    programs! {
        GOOD "a fresh image": [fresh(), Clear(WHOLE)];
        WAW "a fresh image for another stage":
            [image(WHOLE, (Layout::UNDEFINED, DST), (TOP, NO), (COMPUTE, Access::SHADER_WRITE)), Clear(WHOLE)];
        WAW "a clear twice": [fresh(), Clear(WHOLE), Clear(WHOLE)];
        GOOD "clears of two levels": [fresh(), Clear(FIRST), Clear(SECOND)];
        WAW "a barrier of another level":
            [fresh(), Clear(FIRST), image(SECOND, (DST, DST), (T, W), (T, W)), Clear(FIRST)];
        WAW "a barrier of another layer":
            [fresh(), Clear(CORNER), image(BESIDE, (DST, DST), (T, W), (T, W)), Clear(CORNER)];
        GOOD "an image's barrier": [fresh(), Clear(WHOLE), to_source(WHOLE, (T, W), (T, R)), FromImage(B, CORNER, SRC)];
        WAW "a change of layout of what is not available":
            [fresh(), Clear(WHOLE), to_source(WHOLE, (T, NO), (T, R)), FromImage(B, CORNER, SRC)];
        WAW "a change of layout that waits for another stage":
            [fresh(), Clear(WHOLE), to_source(WHOLE, (COMPUTE, Access::SHADER_WRITE), (T, R))];
        RAW "a change of layout that nothing waits for":
            [fresh(), Clear(WHOLE), to_source(WHOLE, (T, W), (COMPUTE, Access::SHADER_READ)),
             FromImage(B, CORNER, SRC)];
        WAR "a change of layout while it is read":
            [image(WHOLE, (Layout::UNDEFINED, SRC), (TOP, NO), (T, R)), FromImage(B, CORNER, SRC),
             image(WHOLE, (SRC, DST), (COMPUTE, NO), (T, W))];
        RAW "reads with a change of layout between them":
            [image(WHOLE, (Layout::UNDEFINED, SRC), (TOP, NO), (T, R)), FromImage(B, CORNER, SRC),
             image(WHOLE, (SRC, Layout::GENERAL), (T, NO), (COMPUTE, Access::SHADER_READ)),
             FromImage(C, CORNER, Layout::GENERAL)];
        GOOD "reads with a change of layout between them, for the second":
            [image(WHOLE, (Layout::UNDEFINED, SRC), (TOP, NO), (T, R)), FromImage(B, CORNER, SRC),
             image(WHOLE, (SRC, Layout::GENERAL), (T, NO), (T, R)), FromImage(C, CORNER, Layout::GENERAL)];
        GOOD "an image's write after a read, execution only":
            [image(WHOLE, (Layout::UNDEFINED, Layout::GENERAL), (TOP, NO), (T, R | W)),
             FromImage(B, CORNER, Layout::GENERAL),
             image(WHOLE, (Layout::GENERAL, Layout::GENERAL), (T, NO), (T, NO)),
             ToImage(C, CORNER, Layout::GENERAL, ENTIRE)];
        WAR "an image's write after a read":
            [image(WHOLE, (Layout::UNDEFINED, Layout::GENERAL), (TOP, NO), (T, R | W)),
             FromImage(B, CORNER, Layout::GENERAL), ToImage(C, CORNER, Layout::GENERAL, ENTIRE)];
        GOOD "copies to two halves of a level":
            [fresh(), ToImage(A, CORNER, DST, LEFT), ToImage(A, CORNER, DST, RIGHT)];
        WAW "copies to parts of a level that overlap":
            [fresh(), ToImage(A, CORNER, DST, LEFT), ToImage(A, CORNER, DST, MIDDLE)];
        RAW "a buffer that is filled and copied to an image": [fresh(), fill(A), ToImage(A, CORNER, DST, ENTIRE)];
        RAW "a buffer that is copied from an image, and read":
            [image(WHOLE, (Layout::UNDEFINED, SRC), (TOP, NO), (T, R)), FromImage(B, CORNER, SRC), copy(B, C)];
    }
}

fn blits() -> Vec<Program> {
    let begin = image(WHOLE, (Layout::UNDEFINED, Layout::GENERAL), (TOP, NO), (T, R | W));
    let up = ToImage(A, CORNER, Layout::GENERAL, ENTIRE);
    let halve = Blit(CORNER, Layout::GENERAL, Layout::GENERAL);
    let program =
        |ops: &[&Op]| std::iter::once(&begin).chain(ops.iter().copied()).cloned().collect::<Vec<_>>();
    let write_to_read = memory((T, W), (T, R));
    programs! {
        GOOD "a level is halved": program(&[&up, &write_to_read, &halve]);
        GOOD "a level is halved, with layouts":
            [fresh(), Clear(FIRST), image(FIRST, (DST, SRC), (T, W), (T, R)), Blit(CORNER, SRC, DST)];
        RAW "a level is halved too early": program(&[&up, &halve]);
        RAW "a level is halved after another stage":
            program(&[&up, &memory((COMPUTE, Access::SHADER_WRITE), (T, R)), &halve]);
        WAW "a level is halved twice": program(&[&halve, &halve]);
        WAR "what is halved is written too early": program(&[&halve, &up]);
        GOOD "what is halved is written after it": program(&[&halve, &memory((T, NO), (T, NO)), &up]);
    }
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
        let elsewhere = memory((T, W), (VERTEX, Access::SHADER_READ));
        all.extend(programs! {
            GOOD right: program(&[fill(buffer), memory((T, W), reads), draw.clone()]);
            RAW early: program(&[fill(buffer), draw.clone()]);
            RAW shaders: program(&[fill(buffer), elsewhere, draw.clone()]);
            WAR written: program(&[draw, fill(buffer)]);
        });
    }
    let behind = memory((FETCH, NO), (T, NO));
    let away = image(CORNER, (ATTACHED, SRC), DRAWN, (T, R));
    let unmade = image(CORNER, (ATTACHED, SRC), (OUTPUT, NO), (T, R));
    all.extend(programs! {
        GOOD "vertices are written behind the draw": program(&[render(&[Plain]), behind, fill(A)]);
        GOOD "vertices that are not drawn": program(&[Fill(A, (12, 244)), render(&[Plain])]);
        GOOD "indices that are not drawn": program(&[Fill(B, (8, 248)), render(&[Indexed])]);
        GOOD "one draw after another": program(&[render(&[Plain, Indexed, Plain])]);
        GOOD "what is drawn is copied": program(&[render(&[Plain]), away, FromImage(B, CORNER, SRC)]);
        WAW "what is drawn is copied too early": program(&[render(&[Plain]), unmade]), SECOND_FORM UNFOLLOWED;
        WAW "rendering twice": program(&[render(&[Plain]), render(&[Plain])]), BOTH ONE_PASS;
        GOOD "rendering twice, in order": program(&[render(&[]), memory(DRAWN, DRAWN), render(&[Plain])]);
    });
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
    programs! {
        GOOD "an event": between(fill(A), halves((T, W), (T, R)), copy(A, B));
        RAW "an event, execution only": between(fill(A), halves((T, NO), (T, NO)), copy(A, B));
        RAW "an event after another stage":
            between(fill(A), halves((COMPUTE, Access::SHADER_WRITE), (T, R)), copy(A, B));
        RAW "a write behind the event": behind(fill(A), halves((T, W), (T, R)), copy(A, B));
        GOOD "a write after a read, by an event": between(copy(A, B), halves((T, NO), (T, NO)), fill(A));
        WAR "a read behind the event": behind(copy(A, B), halves((T, NO), (T, NO)), fill(A));
        GOOD "a change of layout by an event": [fresh(), Clear(WHOLE), set, wait, FromImage(B, CORNER, SRC)];
    }
}

fn submissions() -> Vec<Program> {
    programs! {
        RAW "a read after a write of the submission before": [fill(A), Submit, copy(A, B)], BOTH ONE_COMMAND_BUFFER;
        RAW "a barrier too narrow, for the submission before":
            [fill(A), Submit, memory((T, NO), (T, NO)), copy(A, B)], BOTH ONE_COMMAND_BUFFER;
        GOOD "a barrier for the submission before": [fill(A), Submit, memory((T, W), (T, R)), copy(A, B)];
        GOOD "a barrier at the end of the submission before": [fill(A), memory((T, W), (T, R)), Submit, copy(A, B)];
        RAW "a read after a write of the command buffer before": [fill(A), Again, copy(A, B)], BOTH ONE_COMMAND_BUFFER;
        GOOD "the host waits between two submissions": [fill(A), Submit, Idle, copy(A, B)];
    }
}
