//! Record, replay and budget around the HTTP model.
