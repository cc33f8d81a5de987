//! Random programs against a naive model: no ticket is done too early, and every ticket is done eventually.
//!
//! The model keeps every submission of every timeline and derives the state of each ticket from the full history.

use super::*;
use crate::retire::{Retire, Ticket};

#[derive(Default)]
struct ModelTimeline {
    /// The value that the GPU's next submission signals.
    next: u64,
    /// The value that the GPU has reached.
    reached: u64,
    /// Tickets that were submitted to the GPU but not yet reported to the clock.
    untold: Vec<(usize, u64)>,
    /// The last submitted value of each slot.
    slots: Vec<(u32, u64)>,
}

struct ModelTicket {
    ticket: Ticket,
    timeline: usize,
    slot: Option<u32>,
    /// The value of the submission.
    value: Option<u64>,
    reported: bool,
    discarded: bool,
}

struct Model {
    clock: Clock,
    timelines: Vec<TimelineId>,
    model: Vec<ModelTimeline>,
    tickets: Vec<ModelTicket>,
    /// For each timeline, the highest completed value that the clock knows from any source.
    known: Vec<u64>,
    queue: Retire<usize>,
    /// How often each item was handed out.
    out: Vec<u32>,
    random: fastrand::Rng,
}

impl Model {
    fn new(seed: u64) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        let clock = Clock::new();
        let timelines: Vec<TimelineId> = (0..4).map(|_| clock.add_timeline().unwrap()).collect();
        let model = timelines.iter().map(|_| ModelTimeline { next: 1, ..ModelTimeline::default() }).collect();
        let known = vec![0; timelines.len()];
        Self { clock, timelines, model, tickets: vec![], known, queue: Retire::new(), out: vec![], random }
    }

    fn is_done(&self, at: usize) -> bool {
        let ticket = &self.tickets[at];
        ticket.discarded
            || (ticket.reported && ticket.value.is_some_and(|value| value <= self.known[ticket.timeline]))
    }

    /// A random ticket that satisfies `which`.
    fn some(&mut self, which: impl Fn(&ModelTicket) -> bool) -> Option<usize> {
        let those: Vec<usize> = (0..self.tickets.len()).filter(|&at| which(&self.tickets[at])).collect();
        (!those.is_empty()).then(|| those[self.random.usize(..those.len())])
    }

    fn open(&mut self, timeline: usize, slot: Option<u32>) {
        let ticket = match slot {
            Some(slot) => self.clock.begin_frame(self.timelines[timeline], slot),
            None => self.clock.open(self.timelines[timeline]),
        };
        self.tickets.push(ModelTicket {
            ticket,
            timeline,
            slot,
            value: None,
            reported: false,
            discarded: false,
        });
        self.out.push(0);
    }

    fn report(&mut self, at: usize) {
        let ticket = &mut self.tickets[at];
        ticket.reported = true;
        let value = ticket.value.unwrap();
        self.clock.submit(ticket.ticket, value).unwrap();
        if let Some(slot) = ticket.slot {
            self.enter_slot(at, slot, value);
        }
    }

    fn enter_slot(&mut self, at: usize, slot: u32, value: u64) {
        let timeline = self.tickets[at].timeline;
        let last =
            self.tickets.iter().rposition(|ticket| ticket.timeline == timeline && ticket.slot == Some(slot));
        // The fence belongs to the last frame that began.
        if last != Some(at) {
            return;
        }
        let slots = &mut self.model[timeline].slots;
        match slots.iter_mut().find(|entry| entry.0 == slot) {
            Some(entry) => entry.1 = entry.1.max(value),
            None => slots.push((slot, value)),
        }
    }

    fn step(&mut self) {
        let timeline = self.random.usize(..self.timelines.len());
        match self.random.u32(..100) {
            0..=19 => self.open(timeline, None),
            // Tickets are submitted to the GPU in any order, and reported to the clock later, in any order.
            20..=39 => {
                if let Some(at) = self.some(|ticket| ticket.value.is_none() && !ticket.discarded) {
                    let model = &mut self.model[self.tickets[at].timeline];
                    self.tickets[at].value = Some(model.next);
                    model.untold.push((at, model.next));
                    model.next += self.random.u64(1..4);
                }
            }
            40..=59 => {
                let untold = &mut self.model[timeline].untold;
                if !untold.is_empty() {
                    let (at, _) = untold.swap_remove(self.random.usize(..untold.len()));
                    self.report(at);
                }
            }
            60..=64 => {
                if let Some(at) = self.some(|ticket| ticket.value.is_none() && !ticket.discarded) {
                    self.clock.discard(self.tickets[at].ticket).unwrap();
                    self.tickets[at].discarded = true;
                }
            }
            // A reading of the counter: any value between the reached and the submitted one, or an old reading.
            65..=76 => {
                let model = &mut self.model[timeline];
                model.reached = self.random.u64(model.reached..model.next.max(model.reached + 1));
                let value = if self.random.u32(..4) == 0 { model.reached / 2 } else { model.reached };
                self.clock.completed(self.timelines[timeline], value);
                self.known[timeline] = self.known[timeline].max(value);
            }
            // A frame begins after a wait for its slot's fence, so the GPU has reached its value.
            77..=86 => {
                let slot = self.random.u32(..3);
                let model = &mut self.model[timeline];
                let value = model.slots.iter().find(|entry| entry.0 == slot).map_or(0, |entry| entry.1);
                model.reached = model.reached.max(value);
                self.known[timeline] = self.known[timeline].max(value);
                self.open(timeline, Some(slot));
            }
            // A frame ends. Its value is the next one, so the clock must know all earlier submissions.
            87..=94 => {
                if !self.model[timeline].untold.is_empty() {
                    return;
                }
                let found = self.some(|ticket| {
                    ticket.timeline == timeline
                        && ticket.value.is_none()
                        && !ticket.discarded
                        && ticket.slot.is_some()
                });
                if let Some(at) = found {
                    let value = self.clock.end_frame(self.tickets[at].ticket).unwrap();
                    assert!(value > self.known[timeline]);
                    self.tickets[at].value = Some(value);
                    self.tickets[at].reported = true;
                    self.model[timeline].next = self.model[timeline].next.max(value + 1);
                    let slot = self.tickets[at].slot.unwrap();
                    self.enter_slot(at, slot, value);
                }
            }
            95 => {
                self.clock.idle();
                for (timeline, model) in self.model.iter_mut().enumerate() {
                    let reported =
                        self.tickets.iter().filter(|ticket| ticket.timeline == timeline && ticket.reported);
                    let highest = reported.filter_map(|ticket| ticket.value).max().unwrap_or(0);
                    model.reached = model.next - 1;
                    self.known[timeline] = self.known[timeline].max(highest);
                }
            }
            _ => {
                let reached: Vec<u64> = self.model.iter().map(|model| model.reached).collect();
                let mut asked = [false; 4];
                self.clock
                    .poll(|timeline| {
                        asked[timeline.index()] = true;
                        Ok::<u64, ()>(reached[timeline.index()])
                    })
                    .unwrap();
                for (timeline, asked) in asked.into_iter().enumerate() {
                    let in_flight = (0..self.tickets.len()).any(|at| {
                        self.tickets[at].timeline == timeline
                            && self.tickets[at].reported
                            && !self.is_done(at)
                    });
                    assert_eq!(asked, in_flight, "timeline {timeline}");
                    if asked {
                        self.known[timeline] = self.known[timeline].max(reached[timeline]);
                    }
                }
            }
        }
    }

    fn check(&mut self) {
        self.clock.validate();
        for at in 0..self.tickets.len() {
            let ticket = self.tickets[at].ticket;
            assert_eq!(self.clock.is_done(ticket), self.is_done(at), "{ticket:?}");
        }
        for (timeline, &id) in self.timelines.iter().enumerate() {
            let in_flight = (0..self.tickets.len()).filter(|&at| {
                self.tickets[at].timeline == timeline && self.tickets[at].reported && !self.is_done(at)
            });
            let oldest = in_flight.map(|at| (self.tickets[at].value.unwrap(), self.tickets[at].ticket)).min();
            assert_eq!(self.clock.oldest_pending(id), oldest.map(|(value, ticket)| (ticket, value)));
        }
    }

    fn retire(&mut self) {
        if let Some(at) = self.some(|_| true) {
            if self.out[at] == 0 {
                self.queue.push(self.tickets[at].ticket, at);
                self.out[at] = 1;
            }
        }
        if self.random.u32(..5) == 0 {
            let mut out = Vec::new();
            self.queue.collect(&self.clock, |at| out.push(at)).unwrap();
            // Items come out in ticket order, which is the order of the model's list.
            assert!(out.is_sorted());
            for at in out {
                assert!(self.is_done(at) && std::mem::replace(&mut self.out[at], 2) == 1);
            }
            let left = (0..self.tickets.len()).filter(|&at| self.out[at] == 1 && self.is_done(at)).count();
            assert_eq!(left, 0, "done and not handed out");
        }
        self.queue.validate();
        assert_eq!(self.queue.len(), self.out.iter().filter(|&&out| out == 1).count());
    }
}

#[test]
fn nothing_is_done_early_and_nothing_waits_for_ever() {
    for seed in 0..60 {
        let mut model = Model::new(seed);
        for _ in 0..400 {
            model.step();
            model.check();
            model.retire();
        }
        // Submit or discard everything, and let the GPU complete it.
        for at in 0..model.tickets.len() {
            let ticket = &model.tickets[at];
            if ticket.value.is_none() && !ticket.discarded {
                model.clock.discard(ticket.ticket).unwrap();
                model.tickets[at].discarded = true;
            }
        }
        for timeline in 0..model.timelines.len() {
            while let Some((at, _)) = model.model[timeline].untold.pop() {
                model.report(at);
            }
            let value = model.model[timeline].next;
            model.clock.completed(model.timelines[timeline], value);
            model.known[timeline] = value;
        }
        model.check();
        assert!((0..model.tickets.len()).all(|at| model.is_done(at)));
        model.queue.collect(&model.clock, drop).unwrap();
        assert!(model.queue.is_empty());
        assert!(model.timelines.iter().all(|&timeline| model.clock.oldest_pending(timeline).is_none()));
    }
}
