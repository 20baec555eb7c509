"""Files of a change log by name, in a directory or an object store. Knows nothing of what the files mean.

In: names and bytes. Out: complete files, and a lock for each purpose (capture, maintenance). ``store`` is the
interface; ``local_store`` implements it for a directory, ``remote_store`` for whatever pyarrow or fsspec can open,
``address`` chooses between them. ``json_notes`` reads small files of JSON as the types that they are to have. Start
reading at ``store``. Nothing here is public; users pass a path or a URL.

Invariants:

- A file is either complete under its name or does not exist. Readers never see half of one.
- After ``writing`` (or ``write``) has returned, the file survives a crash of the process and of the machine.
- Replacing a file is atomic: a reader gets the old content or the new content.

How a directory keeps them: the content goes to ``.NAME.tmp`` in the same directory, then fsync(file), rename(), and
fsync(directory). The order matters: without the first fsync, the new name could point to a file whose blocks were never
written; without the second one, the directory entry itself could be lost, and the server would already have been
told to discard that WAL. PostgreSQL does the same in durable_rename(). Directories that are created on the way are
fsynced in their parents.

How an object store keeps them: S3, GCS and Azure make an object visible when its upload is complete, and report success
only once it is durable. So the content is collected in memory and uploaded once, and its size is compared afterwards.
Other file systems (HDFS, most of fsspec) show a file while it is written: there it is uploaded under a temporary name,
then moved.

What keeps a second writer out: in a directory, flock() on a lock file, which the kernel releases when the process dies;
the lock is checked by device and inode, so that an unmounted volume is noticed. Object stores have no locks, and the
conditional writes of some are not available through pyarrow: a writer puts a note with its name there (a claim), and
reads it again before it reports a file as durable. That detects a second writer, but cannot stop it; the replication
slot does (ReplicationSlotAcquire() allows one reader), and a capture claims the log only once it has the slot.
Compaction and prune, which have no slot, take a lease in addition: they are refused while another one has renewed its
claim within the last ten minutes.
"""
