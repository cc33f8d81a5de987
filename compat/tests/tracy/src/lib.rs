//! Plots of Sublet's memory in Tracy: reserved bytes, blocks, and budgets.
//!
//! [`MemoryPlots`] is a layer for `tracing-subscriber`. Combine it with `tracing_tracy::TracyLayer`, which shows spans
//! and events. The driver's time for a block is then a zone, and the reason for a dedicated allocation is a message.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer};
use tracy_client::{Client, PlotConfiguration, PlotFormat, PlotLineStyle, PlotName};

/// Creates Tracy plots from Sublet's events: for each heap its reserved bytes and the used share of its budget, and the
/// number of live blocks.
#[derive(Clone)]
pub struct MemoryPlots {
    client: Client,
    plots: Arc<Mutex<BTreeMap<String, Plot>>>,
}

/// A plot, and its last point.
struct Plot {
    name: PlotName,
    last: f64,
}

impl Default for MemoryPlots {
    fn default() -> Self {
        Self { client: Client::start(), plots: Arc::default() }
    }
}

impl MemoryPlots {
    /// Returns the names of the plots and their last points.
    pub fn last(&self) -> BTreeMap<String, f64> {
        let plots = self.plots.lock().unwrap_or_else(PoisonError::into_inner);
        plots.iter().map(|(name, plot)| (name.clone(), plot.last)).collect()
    }

    fn plot(&self, name: String, format: PlotFormat, value: f64) {
        let mut plots = self.plots.lock().unwrap_or_else(PoisonError::into_inner);
        let plot = plots.entry(name).or_insert_with_key(|name| {
            // One name per heap, so the leak is bounded.
            let plot = Plot { name: PlotName::new_leak(name.clone()), last: 0.0 };
            let look = PlotConfiguration::default().format(format).line_style(PlotLineStyle::Stepped);
            self.client.plot_config(plot.name, look);
            plot
        });
        plot.last = value;
        self.client.plot(plot.name, value);
    }
}

/// The numeric fields of an event.
#[derive(Default)]
struct Figures(BTreeMap<&'static str, u64>);

impl Visit for Figures {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name(), value);
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

impl<S: tracing::Subscriber> Layer<S> for MemoryPlots {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let target = event.metadata().target();
        if !target.starts_with("sublet::") {
            return;
        }
        let mut figures = Figures::default();
        event.record(&mut figures);
        let of = |field: &str| figures.0.get(field).copied();
        let Some(heap) = of("heap") else { return };
        match (event.metadata().name(), of("heap_bytes"), of("blocks"), of("usage"), of("budget")) {
            ("block_created" | "block_destroyed", Some(bytes), Some(blocks), ..) => {
                self.plot(format!("heap {heap}: reserved"), PlotFormat::Memory, bytes as f64);
                self.plot("blocks".to_owned(), PlotFormat::Number, blocks as f64);
            }
            (_, _, _, Some(usage), Some(budget)) if target == "sublet::budget" => {
                let share = usage as f64 * 100.0 / budget.max(1) as f64;
                self.plot(format!("heap {heap}: share of the budget"), PlotFormat::Percentage, share);
            }
            _ => {}
        }
    }
}
