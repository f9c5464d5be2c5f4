//! Copies of the packets of a repetition.

use knee_capture::{Ring, Wanted, refusal};

use crate::asked::CaptureAsked;
use crate::said::Captured;

/// What copies packets now.
#[derive(Default)]
pub struct Capture(Option<Ring>);

impl Capture {
    /// Begins anew. Returns the device.
    pub fn start(&mut self, asked: CaptureAsked) -> Result<String, String> {
        self.0 = None;
        let device = knee_hold::device_towards(asked.towards)
            .map_err(|error| format!("the way to {}: {error}", asked.towards))?;
        let ring = Ring::start(&device, asked.room_bytes, Wanted::Ports(asked.ports));
        let ring = ring.map_err(|error| {
            format!(
                "packets of the device {device} cannot be captured: {}",
                refusal(&error)
            )
        })?;
        self.0 = Some(ring);
        Ok(device)
    }

    /// What was copied, and no more from now on.
    pub fn finish(&mut self, at_ns: u64) -> Result<Captured, String> {
        let ring = self.0.take().ok_or("nothing was captured")?;
        let captured = ring.finish(at_ns);
        let captured =
            captured.map_err(|error| format!("the captured packets cannot be counted: {error}"))?;
        let records = postcard::to_stdvec(&captured).expect("it is plain data");
        Ok(Captured {
            records_bytes: records.len(),
            records,
        })
    }
}
