"""Decoders of timed media: each file a bounded stream of items at the times of its own clock.

`opening` is the way in. `sources` opens a stranger's file and holds it to its bound; `video`,
`audio`, `document` and `sensors` implement `services.ingest.tracks.Track`; what is odd about a
source without stopping it is an `Anomaly`, what stops it is a BadInput (or TooLarge, Unsupported)
that names the frame, the time, the page or the line, never what was in it.
"""

from services.ingest.media.anomalies import Anomaly as Anomaly
from services.ingest.media.limits import Form as Form
from services.ingest.media.limits import MediaLimits as MediaLimits
from services.ingest.media.opening import KINDS as KINDS
from services.ingest.media.opening import open_tracks as open_tracks
from services.ingest.media.sources import MediaFile as MediaFile
from services.ingest.media.tracks import MediaTrack as MediaTrack
