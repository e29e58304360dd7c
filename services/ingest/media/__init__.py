"""Decoders of timed media: each file a bounded stream of items at the times of its own clock.

`isolated.Decoders` is the way in for files of strangers; `opening.open_tracks` is the same within
one process. `sources` opens a file and holds it to its bound; `video`, `audio`, `document` and
`sensors` implement `tracks.MediaTrack`. What is odd about a source without stopping it is an
`Anomaly`; what stops it is a BadInput (or TooLarge, Unsupported) that names the frame, the time,
the page or the line, never what was in it.

Exported here is what the way in needs, and no native library: `opening` loads those.
"""

from services.ingest.media.anomalies import Anomaly as Anomaly
from services.ingest.media.isolated import Decoders as Decoders
from services.ingest.media.limits import Form as Form
from services.ingest.media.limits import MediaLimits as MediaLimits
from services.ingest.media.sources import MediaFile as MediaFile
from services.ingest.media.tracks import MediaTrack as MediaTrack
