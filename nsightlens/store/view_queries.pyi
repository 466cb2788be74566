"""Generated from the headers of the views by `make docs`."""

from collections.abc import Sequence
from typing import Literal, TypeAlias, overload

import pyarrow as pa

_Names: TypeAlias = str | Sequence[str]
_Numbers: TypeAlias = int | Sequence[int]

class ViewQueries:
    @overload
    def view(
        self,
        name: Literal["annotation_summary", "get_gpu_user_annotation_breakdown"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Time spent in each annotation (record_function and similar), per process: as the CPU saw it, and as the
        profiler drew it on the GPU track, from the first to the last kernel launched inside. HTA's user annotation
        breakdown. Annotations nest: the totals of different names overlap. Kineto only; nvtx_summary has NVTX ranges.
        Ranges never closed have no row.

        Columns:
            run: Run (one workload in one configuration).
            tool: kineto.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            kind: annotation (on the CPU) or gpu_annotation.
            total_ns: Sum of the durations.
            instances: Annotations of that name.
            avg_ns: Mean duration, to one decimal.
            stddev_ns: Sample standard deviation of the durations; NULL for a single one.
            min_ns: Shortest.
            max_ns: Longest.
            name: Name of the annotation.
        """

    @overload
    def view(
        self,
        name: Literal["attribution_coverage"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """How much of the GPU work is attributed: per process, the share with a launching call, a range around that
        call, an operator, a module, a phase, a step. GPU work: kernels and memory operations; its time is the sum of
        their durations, not busy time. Kernels that a tool hid inside a graph are not included, nor is ncu, which
        records no calls.

        Columns:
            run: Run (one workload in one configuration).
            tool: Profiler: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown.
            attributed_to: What it is attributed to: call, range, op, module, phase or step.
            activities: Kernels and memory operations that have it.
            all_activities: Kernels and memory operations.
            activities_pct: Share of those that have it.
            gpu_ns: Sum of the durations of those that have it.
            all_gpu_ns: Sum of all their durations.
            gpu_time_pct: Share of the durations; NULL where there is no duration.
            profile_id: Profile; key of `profiles`.
            process_id: Process; key of `processes`.
        """

    @overload
    def view(
        self,
        name: Literal["busy_time"],
        *,
        per: str = ...,
        communication_pattern: str | None = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Span, busy and idle time of each GPU, exact to the ns, per capture window: unions of intervals, never sums. A
        row is a device within a window of a profile; with per := 'process', a process. ncu has no timeline, so no
        rows. The span is from the first to the last work on the GPU; of the steps, or of all that was captured,
        gpu_summary has the shares. busy = compute + exposed communication + what memory operations and graphs add;
        span = busy + idle.

        Parameters:
            per: 'device' or 'process': what the intervals are united over.
            communication_pattern: Regex of the kernel names that communicate; NULL: family `collective`.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown or where processes share the device.
            profile_id: Profile; key of `profiles`.
            window_index: Capture window of the process, from 0.
            process_id: OS process; NULL where several share the device.
            device_id: The physical GPU; NULL where the process used several.
            span_ns: First start to last end of kernels, memory operations and graph executions.
            busy_ns: Union of all of them.
            idle_ns: span_ns minus busy_ns.
            compute_ns: Union of the kernels that do not communicate.
            communication_ns: Union of the kernels that do.
            overlap_ns: Time when both were running.
            exposed_communication_ns: communication_ns minus overlap_ns.
            memory_ns: Union of the memory operations.
            graph_ns: Union of the graph executions whose kernels the tool did not record.
            busy_pct: busy_ns as a share of span_ns, to one decimal.
        """

    @overload
    def view(
        self,
        name: Literal["collective_coverage"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Which communication kernels of each rank could be matched with those of other ranks, and which ranks take no
        part and why. Unmatched kernels count as communication everywhere, but do not show which rank waited for
        which: sends and receives that name no other rank and do not end together on all ranks, calls whose
        counterparts were not captured or whose order is uncertain. The row with rank NULL holds the kernels of
        processes of unknown rank.

        Columns:
            run: Run.
            tool: nsys or kineto.
            execution_id: Start of the job: from a sidecar, else which recording of the run; NULL where there is one.
            rank: Rank; NULL: processes of unknown rank.
            kernels: Communication kernels.
            unmatched_kernels: Those without a counterpart on another rank.
            total_ns: Sum of their durations.
            unmatched_ns: Part of it in kernels without a counterpart.
            unmatched_pct: unmatched_ns as a share of total_ns, to one decimal.
            left_out: Why the rank takes no part in comparisons of arrivals; NULL where it does.
        """

    @overload
    def view(
        self,
        name: Literal["collective_match"],
        *,
        clock: str = ...,
        lag_threshold_ns: int | None = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_step: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Each collective across its ranks: when each rank arrived, which was last, how long the others waited, how long
        the transfer took. A row is one collective on one rank of one execution. Only ranks with known numbers take
        part. Point-to-point calls (send, recv) are not collectives, but unnamed sends and receives that end together
        on all ranks count as an all-to-all. collective_coverage shows what could not be matched. Times of different
        ranks are compared on the clock of the lowest rank (see rank_clock); ranks that name no two hosts and whose
        clocks agree within the uncertainty share a clock. last_rank is known only if that rank came later than the
        second last by more than the clocks' error; else it is NULL: cannot tell.

        Parameters:
            clock: 'fitted' or 'recorded': starts as the fitted clocks correct them, or as the files have them.
            lag_threshold_ns: Lag in ns above which the last rank is named; NULL: the uncertainty of the two clocks.

        Columns:
            run: Run.
            tool: nsys or kineto.
            execution_id: Start of the job: from a sidecar, else which recording of the run; NULL where there is one.
            group_name: Process group, where the trace names it.
            group_size: Ranks of that group; NULL where unknown.
            method: How calls were matched: name and number, name and order, order on the stream.
            call_index: Number of the call within its group, from 0.
            step: Training step of the call on the lowest of its ranks.
            collective: Operation as the trace names it, else the kernel's short name.
            message_bytes: Payload on this rank.
            rank: Rank.
            kernel_id: The kernel; key of `kernels`.
            arrival_ns: Start after the first rank's start.
            wait_ns: From its own start to the last rank's start: time that it waited.
            transfer_ns: From the last rank's start to its own end: time that the data took.
            last_rank: The rank that all others waited for; NULL: cannot tell.
            lag_ns: How much later the last rank came than the second last.
            lag_threshold_ns: Lag above which the last rank is named; NULL where unknown: then no rank is named.
            inherited_ns: Part of lag_ns that the last rank had from its previous collective, which released it later.
            undecided_ns: Part of lag_ns that it may have had from there: it depends on who came second last, which is
                not known.
            propagated_wait_ns: Waits of all ranks in later collectives that come from the last rank's own lateness in
                this one.
            ranks: Ranks whose part of the call is known.
        """

    @overload
    def view(
        self,
        name: Literal["collective_summary"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """The communication operations of each process, by operation: calls, bytes, time and bandwidth. The kernels
        count, not the host ranges that the TensorBoard plugin adds. Latency is the time of the kernels, including
        waits for other ranks. Transfer is the part in which data moved: the time of the fastest rank for the same
        call (NULL where the calls of the ranks cannot be matched; _collective_transfers says how). Both are sums over
        calls that may overlap; *_union_ns are the unions that the plugin shows. Bandwidth uses transfer_ns where
        known, else latency, over the calls of known bytes; bus bandwidth has the factors of nccl-tests: 2 (n - 1) / n
        for allreduce, (n - 1) / n for reducescatter, alltoall, scatter and (on n times the payload) allgather and
        gather, else 1. Large calls are those that the link between the GPUs, at its peak, needs 250 microseconds or
        more for: ten times what a ring of eight takes to start, so that the link, not latency, decides how long they
        take. Their bus bandwidth stands beside that peak (a datasheet's, per direction, in gpu_peaks). The link is
        known where all ranks of the group were recorded on one host, on GPUs of their own, in numbers that use all of
        its lanes; between hosts it is a network that nothing recorded.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            operation: allreduce, allgather, reducescatter, alltoall, broadcast, reduce, sendrecv, ...
            calls: Collective kernels.
            total_bytes: Payload on this rank; NULL where no call's is known.
            avg_bytes: Mean payload of the calls where it is known, to one decimal.
            latency_ns: Sum of the kernels' durations.
            avg_latency_ns: Mean duration, to one decimal.
            latency_union_ns: Union of the kernels.
            matched_calls: Calls whose counterparts on other processes are known.
            unmatched_ns: Durations of the other calls, summed.
            transfer_ns: Time in which data moved; NULL where no call is matched.
            avg_transfer_ns: Mean of it, to one decimal.
            transfer_union_ns: Union of it.
            algorithm_bytes_per_s: Payload per second.
            bus_bytes_per_s: Bus bandwidth; NULL where the size of the group is unknown.
            large_calls: Large calls of known transfer time; NULL where the link is unknown.
            large_transfer_ns: Their transfer times, summed.
            large_bus_bytes_per_s: Their bus bandwidth.
            link_bytes_per_s: Peak of the link, per direction; NULL where unknown.
            link_pct: large_bus_bytes_per_s in % of it, to one decimal.
        """

    @overload
    def view(
        self,
        name: Literal["comm_compute_overlap", "get_comm_comp_overlap"],
        *,
        per: str = ...,
        communication_pattern: str | None = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """How much of the communication ran while kernels computed, per GPU (or process) and capture window: unions of
        intervals, exact to the ns. HTA's communication computation overlap. ncu has no timeline, so no rows.

        Parameters:
            per: 'device' or 'process': what the intervals are united over.
            communication_pattern: Regex of the kernel names that communicate; NULL: family `collective`. HTA takes
                '^nccl.*Kernel'.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown or where processes share the device.
            profile_id: Profile; key of `profiles`.
            window_index: Capture window of the process, from 0.
            process_id: OS process; NULL where several share the device.
            device_id: The physical GPU; NULL where the process used several.
            compute_ns: Union of the kernels that do not communicate.
            communication_ns: Union of the kernels that do.
            overlap_ns: Time when both were running.
            exposed_communication_ns: Time when only communication was running, of the two.
            overlap_pct: overlap_ns as a share of communication_ns, to two decimals; NULL where nothing communicated.
            exposed_pct: exposed_communication_ns as a share of the window's span, to two decimals.
        """

    @overload
    def view(
        self,
        name: Literal["communicator_summary"],
        *,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Each communicator's transfer times compared with those of its peers: which process group has a slow link. A
        row is one communicator (process group) with one operation and payload. Transfer is collective_match's: from
        the start of the last rank to the end, so it excludes waiting for late ranks, except for ranks that were not
        captured. Peers are the other communicators of the same execution, tool, operation, payload and size. A
        communicator is slow if its median is at least 1.5 times that of its peers (the median of their medians), and
        above it by more than the clocks' error.

        Columns:
            run: Run.
            tool: nsys or kineto.
            execution_id: Start of the job: from a sidecar, else which recording of the run; NULL where there is one.
            group_name: Process group, where the trace names it.
            method: How its calls were matched (see collective_match).
            members: Its captured ranks, such as '5 to 1021 by 8' or '0, 1, 4'.
            ranks: How many of its ranks were captured.
            group_size: Ranks of the process group; NULL where unknown (then peers are of as many captured ranks).
            collective: Operation as the trace names it, else the kernel's short name.
            message_bytes: Payload on each rank; NULL where unknown, or where it differs from rank to rank.
            calls: Matched calls.
            transfer_ns: Median of their transfer times, over calls and ranks; NULL where its ranks are on no common
                clock.
            peers: Other communicators of its size that do the same.
            peers_ns: Median of their transfer_ns.
            excess_ns: (transfer_ns - peers_ns) * calls: what the communicator took longer than its peers in total.
            uncertainty_ns: Median of how far its clocks may be off; NULL where unknown.
            verdict: slow; slow or waiting (for a rank without a capture); as its peers; cannot tell (peers, clocks,
                bytes).
        """

    @overload
    def view(
        self,
        name: Literal["comparability"],
        *,
        base: str | None = ...,
        other: str | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Whether two runs can be compared: what was the same and what differed in how they were made and captured,
        differences first. A row is one property under one tool; a tool that captured only one of the runs is a
        difference, too.

        Parameters:
            base: Baseline run; NULL: the first of the store, by name.
            other: Run that is compared with it; NULL: the last.

        Columns:
            property: What is compared.
            tool: Tool whose captures have it.
            base_value: Its value in base; several are joined by commas; NULL where it is not known.
            other_value: Its value in other.
            same: Whether both are known and equal; NULL where neither is known.
        """

    @overload
    def view(
        self,
        name: Literal["cpu_page_fault_summary", "um_cpu_page_faults_sum"],
        *,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Page faults of unified memory on the CPU, by the function that hit them, per run: the rows of `nsys stats
        um_cpu_page_faults_sum`.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys: no other tool records page faults.
            page_faults: Number of page faults.
            function: Function, or address of the instruction; NULL where the report does not say.
            source_file: Source file, where recorded.
            source_line: Line in it, where recorded.
        """

    @overload
    def view(
        self,
        name: Literal["cpu_sample_summary"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Functions in the CPU samples, per process and thread, those sampled most often while the GPU of the process
        idled first: what the host did instead of launching work. A row is a function, wherever it was called from.
        Its samples are those in the function itself; its total includes those in the functions that it called; a
        function that calls itself counts once.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            thread: OS thread id.
            name: Function; [MODULE] where it is not known; (no stack).
            module: File of the library or program.
            idle_samples: Of samples, those while the GPU idled; NULL where the process has no GPU work in the window.
            total_idle_samples: Of total_samples, those; NULL in the same cases.
            samples: Samples in the function itself.
            total_samples: Those, and those in the functions within it.
            idle_pct: idle_samples as a share of all samples of the thread while the GPU idled, to one decimal.
            thread_samples: All samples of the thread.
        """

    @overload
    def view(
        self,
        name: Literal["cpu_sample_tree"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Functions from the outermost to the innermost, per process and thread, with nsys's CPU samples in each: all
        samples, and those while the GPU of the process idled. `nsightlens export flamegraph --weight cpu_samples`
        draws them. All samples of a function with the same callers are one row; samples without a stack have a row
        per thread.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            thread: OS thread id.
            frame_id: The frame; sampled_frame_id of `sampled_frames`; NULL for samples without a stack.
            parent_id: The frame that called it; NULL for the outermost.
            depth: Frames around it.
            name: Function; [MODULE] where it is not known; (no stack).
            module: File of the library or program.
            samples: Samples in it, not in what it called.
            total_samples: Those, and those of the frames within it.
            idle_samples: Of samples, those while the GPU idled; NULL where the process has no GPU work in the window.
            total_idle_samples: Of total_samples, those; NULL in the same cases.
            thread_samples: All samples of the thread.
        """

    @overload
    def view(
        self,
        name: Literal["critical_path"],
        *,
        which_step: int | None = ...,
        range_text: str | None = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """The chain of work that determined how long a process took: what to shorten, and what would wait anyway. The
        path is walked backwards from the last end, each time to the latest predecessor. GPU work starts after the
        previous work in its stream (queue), after its launch (launch), or after work in another stream that the
        launching thread made it wait for (synchronisation). A call that waits for the GPU returns after the last work
        that it awaits. A thread continues what it did before, or starts after another thread's operator. The segments
        follow each other without gap or overlap, so they sum to the path. HTA's critical path, but in elapsed time:
        HTA gives time between operators the weight 0. ncu has no timeline, so no rows. Within a step or range, the
        path goes from its start to the later of its end and the last end of the work launched in it.

        Parameters:
            which_step: Only this training step; NULL: the whole window.
            range_text: Only the first range whose name contains this text, such as an annotation; NULL: the whole
                window.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; times are comparable only within one.
            window_index: Capture window of the process, from 0.
            process_id: OS process.
            position: Place in the path, from 1 for its beginning.
            bound_by: compute, communication, memory, unknown (graphs of unknown kernels), cpu, launch, queue or
                synchronisation.
            start_ns: Start of the segment, relative to the profile's origin.
            duration_ns: Length of the segment.
            path_ns: Length of the whole path.
            device_id: The physical GPU; NULL on the CPU.
            stream: Stream id; NULL on the CPU.
            thread: OS thread id; NULL on the GPU.
            name: Kernel, memory operation, or outermost operator; NULL for CPU time outside operators and for delays.
        """

    @overload
    def view(
        self,
        name: Literal["critical_path_summary", "critical_path_analysis"],
        *,
        which_step: int | None = ...,
        range_text: str | None = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """What bound the time of each process: the critical path (see critical_path) by kind of bound. The parts sum to
        the path.

        Parameters:
            which_step: Only this training step; NULL: the whole window.
            range_text: Only the first range whose name contains this text, such as an annotation; NULL: the whole
                window.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            window_index: Capture window of the process, from 0.
            process_id: OS process.
            bound_by: compute, communication, memory, unknown (graphs of unknown kernels), cpu, launch, queue or
                synchronisation.
            path_pct: total_ns as a share of path_ns, to two decimals.
            total_ns: Time that the path spent there.
            segments: Segments of the path.
            path_ns: Length of the path.
        """

    @overload
    def view(
        self,
        name: Literal["cuda_api_summary", "cuda_api_sum"],
        *,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """CUDA and HIP API calls by function, per run and tool: the numbers of `nsys stats cuda_api_sum`, plus
        percentiles. All ranks, processes and threads of a run are pooled. Calls nest (a runtime call makes driver
        calls) and threads run side by side: the totals are not wall time. Calls without a duration count as calls
        only.

        Columns:
            run: Run (one workload in one configuration).
            tool: Profiler: nsys or kineto. Never add them up: they saw the same calls.
            time_pct: Share of the summed time of all calls of this run and tool, to one decimal.
            total_ns: Sum of duration_ns.
            calls: Number of calls.
            avg_ns: Mean duration, to one decimal.
            median_ns: Median duration: the mean of the middle two for an even number of calls.
            min_ns: Shortest duration.
            max_ns: Longest duration.
            stddev_ns: Sample standard deviation (n - 1), to one decimal; 0 for a single call.
            p5_ns: 5th percentile, interpolated linearly between the two nearest calls.
            p95_ns: 95th percentile, interpolated the same way.
            failed: Calls that returned an error; NULL where the tool recorded no return value.
            name: Function name without the API version suffix.
        """

    @overload
    def view(
        self,
        name: Literal["cuda_api_sync"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Calls that wait until all work of a device or of a stream is done, the longest first: the rule `nsys analyze
        -r cuda_api_sync`. What each waits for is known where CUPTI recorded the wait. Use cudaStreamWaitEvent
        instead, or cudaEventSynchronize where needed.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same calls.
            rank: Rank of the process; NULL where unknown.
            duration_ns: Duration of the call.
            wait_ns: Part of it that CUPTI counts as waiting; NULL where it recorded none.
            waits_for: stream or context (several: by comma); NULL in the same cases.
            stream: Least stream that it waits for; NULL where none is named.
            name: Function, without the API version suffix.
            pid: OS process id.
            thread: OS thread id of the caller.
            start_ns: Start, relative to the profile's origin.
            profile_id: Profile; starts are comparable only within one.
            process_id: OS process.
            launch_id: The call; key of `api_calls`.
        """

    @overload
    def view(
        self,
        name: Literal["cuda_api_trace"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Each API call, in order: the rows of `nsys stats cuda_api_trace`, without the priority of the thread.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same calls.
            rank: Rank of the process; NULL where unknown.
            start_ns: Start, relative to the profile's origin.
            duration_ns: Duration.
            name: Function, without the API version suffix.
            return_value: Return code, where recorded (0 = success).
            pid: OS process id.
            thread: OS thread id of the caller.
            profile_id: Profile; starts are comparable only within one.
            process_id: OS process.
            correlation_id: CUPTI correlation id.
            launch_id: The call; key of `api_calls`.
        """

    @overload
    def view(
        self,
        name: Literal["cuda_gpu_trace"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Each kernel, copy and set on the GPUs, in order: the rows of `nsys stats cuda_gpu_trace`, without green
        contexts. Rates are exact, where nsys rounds the bytes per second of each ns down. ncu has no timeline, so no
        rows.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; starts are comparable only within one.
            process_id: OS process.
            device_id: The physical GPU.
            device: Device ordinal within the process.
            gpu: Product name of the GPU.
            context: CUDA context id within the process.
            stream: Stream id within the process.
            start_ns: Start, relative to the profile's origin.
            duration_ns: Duration.
            correlation_id: CUPTI correlation id.
            grid: Grid, as x,y,z; NULL for memory operations.
            block: Block, as x,y,z, as above.
            registers_per_thread: Registers per thread.
            static_shared_bytes: Static shared memory per block.
            dynamic_shared_bytes: Dynamic shared memory per block.
            bytes: Bytes moved or set; NULL for kernels.
            bytes_per_s: Bytes over duration.
            source_memory: Memory that a copy goes from, such as pageable.
            destination_memory: Memory that it goes to.
            kind: kernel, memcpy, memset, migration or decompression.
            work_id: Key of `kernels` or `memory_ops`.
            name: Kernel name, or label of the memory operation.
        """

    @overload
    def view(
        self,
        name: Literal["cuda_memcpy_async"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Asynchronous copies from or to pageable memory, the longest first: the rule `nsys analyze -r
        cuda_memcpy_async`. CUDA stages such a copy through pinned memory, and the call may hold up its thread: pin
        the memory (cudaHostAlloc, pin_memory=True).

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same operations.
            rank: Rank of the process; NULL where unknown.
            duration_ns: Duration on the GPU.
            call_ns: Duration of the call: how long the thread was held up.
            bytes: Bytes moved or set.
            function: The API function.
            direction: HtoD, DtoH, ...
            source_memory: Memory that it goes from.
            destination_memory: Memory that it goes to.
            start_ns: Start on the GPU, relative to the profile's origin.
            device_id: The physical GPU.
            context: CUDA context id within the process.
            stream: Stream id within the process.
            thread: OS thread id of the caller.
            profile_id: Profile; starts are comparable only within one.
            process_id: OS process.
            memory_op_id: The operation; key of `memory_ops`.
        """

    @overload
    def view(
        self,
        name: Literal["cuda_memcpy_sync"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Copies by calls that wait until they are done, the longest first: the rule `nsys analyze -r cuda_memcpy_sync`.
        Copies of at most 64,000 bytes to the GPU are left out: their call returns before they are done. Use the Async
        functions with pinned memory instead.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same operations.
            rank: Rank of the process; NULL where unknown.
            duration_ns: Duration on the GPU.
            call_ns: Duration of the call: how long the thread was held up.
            bytes: Bytes moved or set.
            function: The API function.
            direction: HtoD, DtoH, ...
            source_memory: Memory that it goes from.
            destination_memory: Memory that it goes to.
            start_ns: Start on the GPU, relative to the profile's origin.
            device_id: The physical GPU.
            context: CUDA context id within the process.
            stream: Stream id within the process.
            thread: OS thread id of the caller.
            profile_id: Profile; starts are comparable only within one.
            process_id: OS process.
            memory_op_id: The operation; key of `memory_ops`.
        """

    @overload
    def view(
        self,
        name: Literal["cuda_memset_sync"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Sets of pinned or managed memory by calls without Async, the longest first: the rule `nsys analyze -r
        cuda_memset_sync`. Only for such memory does the call wait until the set is done.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same operations.
            rank: Rank of the process; NULL where unknown.
            duration_ns: Duration on the GPU.
            call_ns: Duration of the call: how long the thread was held up.
            bytes: Bytes moved or set.
            function: The API function.
            destination_memory: Memory that is set.
            start_ns: Start on the GPU, relative to the profile's origin.
            device_id: The physical GPU.
            context: CUDA context id within the process.
            stream: Stream id within the process.
            thread: OS thread id of the caller.
            profile_id: Profile; starts are comparable only within one.
            process_id: OS process.
            memory_op_id: The operation; key of `memory_ops`.
        """

    @overload
    def view(
        self,
        name: Literal["cuda_work_summary", "cuda_api_gpu_sum"],
        *,
        with_calls: bool = ...,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """API calls, kernels and memory operations in one list by name, per run and tool: the numbers of `nsys stats
        cuda_api_gpu_sum`, and with with_calls := false those of cuda_gpu_sum. All ranks, processes and threads of a
        run are pooled. Calls wait for work in the same list, so totals are not wall time.

        Parameters:
            with_calls: Whether the list and the shares include API calls.

        Columns:
            run: Run (one workload in one configuration).
            tool: Profiler: nsys or kineto. Never add them up: they saw the same work.
            time_pct: Share of the summed time of this run and tool's list, to one decimal.
            total_ns: Sum of duration_ns.
            instances: Calls, kernels or memory operations.
            avg_ns: Mean duration, to one decimal.
            median_ns: Median duration: the mean of the middle two for an even number.
            min_ns: Shortest duration.
            max_ns: Longest duration.
            stddev_ns: Sample standard deviation (n - 1), to one decimal; 0 for a single one.
            category: call, kernel or memory: nsys's CUDA_API, CUDA_KERNEL and MEMORY_OPER.
            name: Kernel name, label of the memory operation, or function, as the tool prints it.
        """

    @overload
    def view(
        self,
        name: Literal["device_sample_summary"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """GPU samples over the whole capture, by GPU and metric: clocks, activity, throughput.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys (GPU metrics) or kineto (counter events).
            profile_id: Profile.
            rank: Rank of the process that used the GPU first; NULL where unknown.
            device: Its ordinal of the GPU; NULL where the report has none.
            gpu: Product name.
            metric: Name as the tool gives it, without the unit.
            unit: hz, %, or what the tool writes.
            samples: Number of samples.
            mean: Mean of the values.
            minimum: Smallest value.
            p5: 5th percentile, interpolated linearly between the two nearest samples, to three decimals.
            median: Median, interpolated the same way.
            p95: 95th percentile, interpolated the same way.
            maximum: Largest value.
            first_ns: Time of the first sample, relative to the profile's origin.
            last_ns: Time of the last one.
            device_id: The GPU.
        """

    @overload
    def view(
        self,
        name: Literal["diagnostic_summary"],
        *,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """What was wrong, missing, dropped or guessed: the diagnostics by run, tool, severity and code, worst first. Two
        of them come from the kernels of a run: more than a tenth of their time is in kernels of unknown kind
        (unclassified_time), or kernels last longer than their stream allows (impossible_durations).

        Columns:
            run: Run; NULL for files that belong to none.
            tool: Profiler; NULL where no reader took the file.
            severity: error, warning or info.
            code: Short stable code.
            count: How many times, over all files.
            files: Distinct files; NULL where it concerns the run.
            message: Message of the first of those files (by path): what it means and what to do.
        """

    @overload
    def view(
        self,
        name: Literal["distributed_overview", "distributed_view"],
        *,
        communication_pattern: str | None = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_step: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """The Distributed View of the TensorBoard plugin, per process and step: computation alone, computation
        overlapped with communication, communication alone, and the rest; they sum to the step. Communication is the
        union of communication kernels and of the host side of communication operators, as in the plugin (which links
        fewer kernels: see step_breakdown). Without compute kernels, operators count as computation. Then the time in
        collective kernels that began in the step, split into data transfer (as long as the fastest process needed for
        the same collective) and synchronising (waiting for the others); NULL where the processes' collectives cannot
        be matched.

        Parameters:
            communication_pattern: Regex of the kernel names that communicate; NULL: family `collective`.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            window_index: Capture window of the process, from 0.
            step: Step number; NULL for a process without steps.
            step_id: Range of the step; key of `ranges`.
            start_ns: Start of the step, relative to the profile's origin.
            step_ns: Length of the step.
            computation_ns: Computation, no communication.
            overlapping_ns: Both at once.
            communication_ns: Communication, no computation.
            other_ns: Neither.
            synchronizing_ns: Collective kernels waiting for other processes.
            transfer_ns: Collective kernels moving data.
        """

    @overload
    def view(
        self,
        name: Literal["execution_summary", "overview_view"],
        *,
        communication_pattern: str | None = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """The Execution Summary of the TensorBoard plugin: mean time per step and share of each category, per process
        and capture window, in the plugin's order of priority. Categories are exclusive and sum to the steps:
        step_breakdown has what each means, where it differs from the plugin and when it is NULL. Steps have equal
        weight, none is left out.

        Parameters:
            communication_pattern: Regex of the kernel names that communicate; NULL: family `collective`.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            window_index: Capture window of the process, from 0.
            category: kernel, memcpy, memset, communication, runtime, data_loader, cpu_exec or other.
            time_pct: Share of the steps' time, to two decimals.
            avg_ns: Mean per step, to one decimal.
            total_ns: Sum over the steps.
            min_ns: In the step with least.
            max_ns: In the step with most.
            steps: Steps summed.
            steps_ns: Length of all steps together.
        """

    @overload
    def view(
        self,
        name: Literal["exposed_communication"],
        *,
        per: str = ...,
        communication_pattern: str | None = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Communication by name of the kernel, or of the copy that a collective runs as: how much of it ran without a
        compute kernel on the GPU (or in the process), per capture window. Kernels that communicate at the same time
        count separately: comm_compute_overlap has their union. ncu has no timeline, so no rows.

        Parameters:
            per: 'device' or 'process': where a computing kernel hides the communication.
            communication_pattern: Regex of the kernel names that communicate; NULL: family `collective`. HTA takes
                '^nccl.*Kernel'.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            window_index: Capture window of the process, from 0.
            process_id: OS process.
            device_id: The physical GPU.
            instances: Communication kernels of that name.
            total_ns: Sum of their durations.
            overlapped_ns: Part of it in which a kernel computed.
            exposed_ns: The rest.
            exposed_pct: exposed_ns as a share of total_ns, to two decimals.
            name: Kernel name as the tool prints it.
        """

    @overload
    def view(
        self,
        name: Literal["family_summary"],
        *,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        only_family: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Kernel time by family (gemm, collective, ...), per run and tool.

        Columns:
            run: Run (one workload in one configuration).
            tool: Profiler: nsys, ncu or kineto. Never add them up: they saw the same launches.
            family: Kernel family; `other` is what no rule recognised (see unclassified_kernels).
            time_pct: Share of the clipped kernel time of this run and tool, to one decimal.
            total_ns: Sum of duration_ns.
            clipped_ns: The same, with kernels whose end cannot be true (kernel_overruns) ended where the next one
                begins.
            instances: Kernel launches.
            avg_ns: Mean duration, to one decimal.
            names: Distinct kernel names.
            processes: Distinct processes that launched one.
        """

    @overload
    def view(
        self,
        name: Literal["findings"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """What a job could win, and where: the leaves of time_tree that can be acted upon, a row for each, what wins
        most first. The view verdict has the first three of each run. A finding is at least 2 % of the judged window,
        over all its ranks and GPUs; its rank is the time that curing it wins, where that is known (late ranks: what
        the job gains once all of them are on time), else its size, which is the most that it could. Causes are those
        of time_tree; where only ncu measured, what limits the kernels. A run with nothing to judge has no row, and
        verdict says why; what only a part of a run is about, such as a slow process group or pipeline stage, is in
        communicator_summary and pipeline_bubbles, and the rules of other tools are in recommendations.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys, kineto or ncu. Never add them up: they saw the same work.
            place: From 1 on, in each run and tool.
            cause: late rank, communication, copies, computing, FP32 (products that use no tensor cores), low fill
                (fewer blocks than half of the SMs), start-up, or a cause of idle time: data loader, API calls,
                waiting, launching, first use, …
            subject: The kernel, call, range, direction or ranks that it is about; NULL where there is none.
            issuer: In which operator, range or module most of its calls were made, or its work was launched, of two
                the one that takes more at the front; NULL where none was recorded, where several share it, or where
                it is not about calls or work.
            about: What it is about and where, in words; names are shortened.
            rank: The rank that alone has it; NULL where several do, or where it is unknown.
            who: The ranks or GPUs in whose window it is 2 %, too; NULL where one GPU without a rank is all.
            total_ns: How long, over all ranks, GPUs and steps. Of a call that waited until the GPU had nothing to do,
                with the idle time behind it that would be gone if its thread had launched on instead (`what` says how
                much): in time_tree that stands under what the thread did, and no other finding has it where it is
                most of a leaf.
            of_ns: The whole: the windows of all trees; NULL for start-up, which is no part of them.
            share_pct: total_ns as a share of of_ns, to one decimal.
            winnable_ns: What the job would gain by curing it; NULL where that is not known.
            confidence: high, medium or low: whether the time was seen under this cause, or the cause is inferred;
                lower where the profiler slows the host, or where launches and GPU work do not fit each other.
            what: What was seen; NULL where that is the time alone.
            action: What can be done.
            against: What speaks against it; NULL where nothing is known to.
            more: The command that shows more.
            command: The same for programs: its name, then its words, then its options as --name=value.
        """

    @overload
    def view(
        self,
        name: Literal["frequent_kernel_sequences", "get_frequent_cuda_kernel_sequences"],
        *,
        range_text: str = ...,
        min_length: int = ...,
        how_many: int = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Sequences of kernels and memory operations that operators launch repeatedly, most frequent first: candidates
        for fusion or a CUDA graph. HTA's frequent kernel sequences. An occurrence is an operator (or NVTX range)
        whose name contains range_text and that lies in no other such range of its thread; its sequence is what was
        launched inside it on that thread, in order of start. The suffix that PyTorch's NVTX appends to a name (", seq
        = 12") is cut off. An empty range_text takes the outermost ranges.

        Parameters:
            range_text: Text that the operator's name contains, such as 'aten::' or 'attention'; '' takes every
                operator.
            min_length: Kernels that a sequence has at least.
            how_many: Sequences to return for each process; NULL for all.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same launches.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            position: 1 for the most frequent sequence of the process.
            instances: How often it occurred.
            length: Kernels and memory operations in it.
            gpu_ns: Sum of their durations, over all occurrences.
            cpu_ns: Sum of the durations of the operators, over all occurrences.
            operator: Name of the operator.
            pattern: Names of the kernels and memory operations, in order, joined by ' | '.
        """

    @overload
    def view(
        self,
        name: Literal["gpu_gaps"],
        *,
        per: str = ...,
        min_gap_ns: int = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Gaps without work on a GPU, between its first and last work: the rows of `nsys analyze -r gpu_gaps`, whose
        threshold is 500 ms (min_gap_ns := 500000000) and which looks at each process alone (per := 'process_device').
        With min_gap_ns := 1 the gaps of a device sum to idle_ns of busy_time. ncu has no timeline, so no rows.

        Parameters:
            per: 'device': processes that share a GPU keep it busy together; 'process_device': each on its own.
            min_gap_ns: Shortest gap to list, in ns.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process that ended the gap; NULL where unknown.
            profile_id: Profile; starts are comparable only within one.
            window_index: Capture window of the process; time between windows is not a gap.
            process_id: OS process that ended the gap.
            device_id: The physical GPU.
            start_ns: Start of the gap, relative to the profile's origin.
            gap_ns: Length of the gap.
            next_kind: What ended it: kernel, memory or graph.
            next_name: Name of the kernel that ended it; NULL for memory operations and graphs.
        """

    @overload
    def view(
        self,
        name: Literal["gpu_summary"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """The GPU Summary of the TensorBoard plugin, per GPU of a process and capture window: what it is and how well it
        was used from the first step's start to the last step's end, or without steps over the whole capture of the
        process. As in the plugin, utilization counts kernels (also collectives) but not memory operations; busy_pct
        includes them. Estimated SM efficiency sums the blocks per SM of concurrent kernels, at most 1, over all time,
        including idle time. Occupancy is the mean over kernel time within the steps. Tensor cores have two shares: of
        all kernels, and of those with a known operator, as in the plugin (whose table of names ends with Ampere).
        Figures that the tool did not record are NULL. busy_time combines the processes of a GPU, and its span is from
        the first to the last work.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            window_index: Capture window of the process, from 0.
            device_id: The physical GPU; key of `devices`.
            device: The tool's ordinal of it.
            gpu: Product name.
            memory_bytes: Device memory.
            compute_capability: Such as '9.0'.
            span_ns: First step's start to last step's end; without steps the whole capture.
            utilization_pct: Union of its kernels as a share of span_ns, to two decimals.
            busy_pct: Union of its kernels and memory operations, as above.
            sm_efficiency_pct: Estimated SM efficiency, to two decimals; NULL where over 5 % of kernel time has no
                grid, as in graphs that were recorded whole.
            occupancy_pct: Estimated occupancy, to two decimals (Kineto).
            tensor_core_pct: Share on tensor cores of the kernel time that is known to use them or not, to two
                decimals; NULL where that is less than half of it.
            tensor_core_unknown_pct: Share of kernel time for which that is unknown.
            operator_tensor_core_pct: tensor_core_pct of the kernels whose operator is known.
        """

    @overload
    def view(
        self,
        name: Literal["gpu_time_util"],
        *,
        chunks: int = ...,
        below_pct: float = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Periods in which a GPU works less than a limit, idlest first: the rule `nsys analyze -r gpu_time_util`. The
        time from the first to the last work of a process on a device is cut into equal chunks; neighbours below the
        limit are one row. Work that runs at once is added up, as nsys does, so that a chunk may be above 100 %;
        busy_time has the union.

        Parameters:
            chunks: Chunks that the time of each process and device is cut into, from 1 to 1000.
            below_pct: Chunks that work less than this, in %, are listed.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; starts are comparable only within one.
            process_id: OS process.
            window_index: Capture window of the process.
            device_id: The physical GPU.
            start_ns: Start of the stretch, relative to the profile's origin.
            duration_ns: Length of the stretch.
            in_use_pct: Time of the work in it over its length, to one decimal.
        """

    @overload
    def view(
        self,
        name: Literal["gpu_use_over_time", "cuda_gpu_time_util_map", "mpi_gpu_time_util_map"],
        *,
        bins: int = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """How much of each stretch of time a GPU works for a process, and how much the process spends in MPI: the
        figures of nsys's recipes cuda_gpu_time_util_map and mpi_gpu_time_util_map. The time from the first to the
        last work of a process on a device is cut into equal bins. Work that runs at once counts once, and so do MPI
        calls of several threads.

        Parameters:
            bins: Bins that the time of each process and device is cut into, from 1 to 1000.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; starts are comparable only within one.
            process_id: OS process.
            window_index: Capture window of the process.
            device_id: The physical GPU.
            bin: Number of the bin, from 0.
            start_ns: Start of the bin, relative to the profile's origin.
            duration_ns: Length of the bin; the last may be shorter.
            work_ns: Union of the work in it.
            work_pct: work_ns as a share of duration_ns, to one decimal.
            mpi_ns: Union of the MPI calls of the process in it; NULL where the profile has none.
            mpi_pct: mpi_ns as a share of duration_ns, to one decimal.
        """

    @overload
    def view(
        self,
        name: Literal["graph_replay_operators"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Which operator each kernel of a replayed CUDA graph came from. The calls recorded while the graph was captured
        are paired with the work of its replays, one by one. They may be in a separate trace, as SGLang and vLLM write
        it, or in the same one. A row is a node of a graph; graphs are distinguished by the kinds and names of their
        nodes. A capture fits if it made the same number of kernels, copies and sets in the same order. Several may
        fit (captures for several batch sizes): columns on which they disagree are NULL. Work of graphs that no
        capture fits has rows without an operator.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys (of graphs traced node by node) or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown.
            graph: Number of the graph, the one with most nodes first.
            node: Place of the work within its replay, from 1.
            kind: kernel, memcpy or memset.
            name: Short name of the kernel; the direction of a copy.
            replays: Replays of the graph that were recorded.
            total_ns: Time of the node in all of them.
            captures: Recorded captures that fit the graph.
            op: Operator that launched it in the capture; NULL where no capture fits, or where they differ.
            op_shapes: Input shapes of that operator, as above.
            module: Innermost nn.Module around the launch in the capture, as above.
        """

    @overload
    def view(
        self,
        name: Literal["headroom"],
        *,
        by: str = ...,
        assume_gpu: str | None = ...,
        force_gpu: bool = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """How much faster the GPU work could be: time minus time at its roof, per kernel, operator, module, family,
        phase or step. The roof of a launch is the longer of its operations at the GPU's peak for their precision and
        its bytes at the bandwidth of its memory, by the datasheet. Work and bytes come from ncu's counters of the
        same kernel, grid and block, else from the shapes of its operator (shape_work), carried from Kineto to nsys by
        launch, else by configuration if all launches agree. If several kernels share the work of a call, the call has
        a roof as a whole: per operator, module, phase and step its kernels share it by their times. Products,
        convolutions and attention need both operations and bytes; for other kernels the bytes are enough.
        Collectives, memory operations and graphs of unknown kernels have no roof here. max_gain_ns is the most by
        which faster kernels can shorten the process: the headroom of each launch, and of one whose roof is unknown
        all its time, as far as the launch is on the critical path (critical_path). Times come from the undisturbed
        tool: nsys, else Kineto; durations of concurrent kernels add up. If no launch of a row has a known roof, its
        gain, headroom and time at the roof are NULL: unknown_roof_ns and no_roof_ns are all of its gpu_ns. Within
        each run and tool, the largest gain comes first, then the largest headroom, and unknown ones last.

        Parameters:
            by: kernel (key and launch configuration), key, family, op, module, phase or step.
            assume_gpu: Product name for the peaks, where the capture lacks it and its compute capability and SMs fit.
            force_gpu: Whether assume_gpu is taken for every GPU, unchecked.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto: the undisturbed tool of the run.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            item: The kernel, operator, ...; NULL for work outside any.
            launches: Kernels, memory operations and graph launches.
            max_gain_ns: What faster kernels can save the process at most; NULL where no roof is known.
            headroom_ns: Time above the roof, of launches with a known roof; NULL where there is none.
            at_roof_ns: Their time at the roof, as above.
            unknown_roof_ns: Time of kernels whose roof is unknown.
            no_roof_ns: Time of collectives, memory operations and graphs of unknown kernels.
            gpu_ns: Sum of all durations.
            critical_path_ns: Time on the critical path; NULL where there is none.
            bound_by: memory or compute: the roof of most of at_roof_ns.
            work_source: counters, shapes or both.
            launches_above_roof: Launches that were faster than their roof, as above.
            gain_limit: critical path, or own time where no critical path is known.
            reason: Why the roof is unknown, for most of unknown_roof_ns.
        """

    @overload
    def view(
        self,
        name: Literal["host_function_summary"],
        *,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Host functions that streams ran in order, per run: later work in the stream waits until the function returns.
        idle_causes shows how long GPUs idled for them (cause host_function).

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys.
            time_pct: Share of the summed time of all host functions of this run, to one decimal.
            total_ns: Sum of duration_ns.
            instances: Number of functions that ran.
            avg_ns: Mean duration, to one decimal.
            median_ns: Median duration: the mean of the middle two for an even number.
            min_ns: Shortest duration.
            max_ns: Longest duration.
            stddev_ns: Sample standard deviation (n - 1), to one decimal; 0 for a single one.
            streams: Distinct streams among them, per process and context.
            kind: launch (cudaLaunchHostFunc) or graph_node.
            name: The API function that launched it, or its graph; NULL where the call was not recorded.
        """

    @overload
    def view(
        self,
        name: Literal["idle_breakdown", "get_idle_time_breakdown"],
        *,
        per: str = ...,
        kernel_wait_below_ns: int = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Why streams (or GPUs, or processes) were idle, per capture window: HTA's idle time breakdown, exact to the ns.
        A gap is host wait if the next work was launched only after the gap began: the CPU was late. If it was
        launched in time, a short gap is kernel wait and a long one is other (mostly waits for events of other
        streams). A gap is unlinked if the launching call was not recorded. A gap ends with the next work of the
        stream, device or process; overlapping work leaves no gap. ncu has no timeline, so no rows.

        Parameters:
            per: 'stream', 'device' or 'process': whose gaps.
            kernel_wait_below_ns: Gaps shorter than this, in ns, are kernel wait where the launch was in time.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown or where processes share the device.
            profile_id: Profile; key of `profiles`.
            window_index: Capture window of the process, from 0.
            process_id: OS process; NULL where several share the device.
            device_id: The physical GPU; NULL where the process used several.
            context: CUDA context id within the process; NULL but per stream.
            stream: Stream id within the process; NULL but per stream, and for work outside streams.
            span_ns: First start to last end of the work.
            busy_ns: Union of the work.
            idle_ns: span_ns minus busy_ns.
            host_wait_ns: Idle because the next work was launched after the gap had begun.
            kernel_wait_ns: Idle between two pieces of work, both launched in time, for less than
                kernel_wait_below_ns.
            other_ns: Idle for longer, though the next work was launched in time.
            unlinked_ns: Idle before work whose launching call was not recorded.
            gaps: Number of gaps.
        """

    @overload
    def view(
        self,
        name: Literal["idle_by_range"],
        *,
        alike: bool = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """What the host was in while a GPU idled: the gaps of each GPU that fall into ranges of a name, for each
        process. MPI functions, NVTX ranges, annotations, operators and steps; time in several ranges of one name
        counts once. Ranges nest, so the times of different names overlap; all ranges together and the row "(in no
        range)" are the idle time. What a process does before its first work on a GPU (loading, MPI_Init) is in no
        row: step_breakdown of a process without steps includes it. idle_causes says what held up the work that ended
        each gap.

        Parameters:
            alike: Names that differ only in numbers are one, with # for each number: IO # for IO 190 and IO 250.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            device_id: The physical GPU.
            kind: mpi (a call that nsys traced as such), nvtx_push_pop, nvtx_start_end, annotation, operator, module
                or step; NULL in no range.
            domain: NVTX domain; NULL for the default domain and elsewhere.
            name: Name of the range, or the MPI function; (in no range): the rest of the idle time.
            idle_ns: Time in such ranges while the GPU idled between its first and last work for the process.
            idle_pct: Share of all such idle time of that GPU.
            inside_ns: Time in such ranges: their union; NULL in no range.
            gpu_idle_ns: All idle time of the GPU between its first and last work for the process.
            ranges: Number of ranges of that name; NULL in no range.
        """

    @overload
    def view(
        self,
        name: Literal["idle_causes"],
        *,
        per: str = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Why each GPU idled, by what the thread did that launched the work after each gap: a row per cause and
        function. Each instant of a gap has one cause. If the next work was launched after the gap began: until its
        launching call began, synchronisation (the thread waited for the GPU in a function), call (it was in another
        API function) or cpu (in none); from then on launch (the call, and the delay until the work starts). If the
        work was launched before the gap began: event (its stream had to wait for an event) or queue (the GPU's
        delay). unlinked: the launching call was not recorded. While the stream of that work ran a host function
        (cudaLaunchHostFunc, a host node of a CUDA graph), the cause is host_function, whatever the thread did; the
        time before and after it counts as separate gaps. A thread that waits for the GPU cannot keep it busy:
        began_in names the function in which it waited, or copied, when the gap began, so all rows with the same
        began_in are what that function costs. A cpu row has no name: in no recorded call, the thread ran code of the
        program, or waited for something else than the GPU (input, a lock, another process); operators, NVTX ranges
        and MPI functions of that time are in idle_by_range, functions in cpu_sample_summary. off_cpu_ns is the part
        in which the thread ran on no CPU. A waiting thread gives up its CPU, unless it spins; a thread that should
        launch but was off the CPU was blocked or preempted.

        Parameters:
            per: 'device': times in which nothing ran on it; 'stream': in which nothing ran in the stream.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown or where processes share the device.
            profile_id: Profile; key of `profiles`.
            window_index: Capture window of the process, from 0.
            process_id: OS process; NULL where several share the device.
            device_id: The physical GPU.
            context: CUDA context id within the process; NULL but per stream.
            stream: Stream id within the process; NULL but per stream, and for work outside streams.
            cause: synchronisation, call, cpu, launch, event, queue, host_function or unlinked.
            name: The function, for synchronisation, call and launch; for host_function the call that gave it to the
                stream; NULL for cpu (in no call), event, queue and unlinked.
            began_in: Function that waits for the GPU, or copies, in which that thread was when the gap began; NULL:
                in none.
            idle_pct: idle_ns as a share of gaps_ns, to one decimal.
            idle_ns: Idle time of this cause.
            off_cpu_ns: Part of idle_ns in which the thread ran on no CPU; NULL where its scheduling was not recorded
                (nsys records it with --cpuctxsw), and for event, queue, unlinked and host_function, of which the
                launching thread is no cause.
            gaps: Gaps that have some.
            gaps_ns: All idle time of the device or stream: idle_ns of busy_time (per device) and of idle_breakdown.
        """

    @overload
    def view(
        self,
        name: Literal["kernel_breakdown", "get_gpu_kernel_breakdown"],
        *,
        how_many: int = ...,
        communication_pattern: str | None = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """The kernels and memory operations that take the most time, by kind and process: HTA's kernel breakdown.
        Durations are summed: concurrent work counts separately. The names after the first how_many of a kind are one
        row without a name. ncu has no row: its durations are those of replays.

        Parameters:
            how_many: Names to list for each kind and process; NULL for all.
            communication_pattern: Regex of the kernel names that communicate; NULL: family `collective`. HTA takes
                '^nccl.*Kernel'.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            kernel_type: compute, communication or memory.
            position: 1 for the name with the largest total; NULL for the row of all the others.
            time_pct: total_ns as a share of type_ns, to one decimal.
            total_ns: Sum of the durations.
            instances: Kernels or memory operations.
            avg_ns: Mean duration, to one decimal.
            stddev_ns: Sample standard deviation of the durations; NULL for a single one.
            min_ns: Shortest.
            max_ns: Longest.
            type_ns: Sum of the durations of this kind in this process.
            names: Names in the row: 1, or how many the row of the others holds.
            name: Kernel name, or label of the memory operation, as the tool prints it.
        """

    @overload
    def view(
        self,
        name: Literal["kernel_by_config", "cuda_gpu_kern_gb_sum"],
        *,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        only_family: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Kernel time by name and launch configuration, per run and tool (`nsys stats cuda_gpu_kern_gb_sum`). All ranks,
        devices and processes of a run are pooled. Launches without a duration count as instances only.

        Columns:
            run: Run (one workload in one configuration).
            tool: Profiler: nsys, ncu or kineto. Never add them up: they saw the same launches.
            time_pct: Share of the clipped kernel time of this run and tool, to one decimal.
            total_ns: Sum of duration_ns.
            clipped_ns: The same, with kernels whose end cannot be true (kernel_overruns) ended where the next one
                begins.
            instances: Kernel launches.
            avg_ns: Mean duration, to one decimal.
            median_ns: Median duration: the mean of the middle two for an even number of launches.
            min_ns: Shortest duration.
            max_ns: Longest duration.
            stddev_ns: Sample standard deviation (n - 1), to one decimal; 0 for a single launch.
            grid_x: Grid size, x.
            grid_y: Grid size, y.
            grid_z: Grid size, z.
            block_x: Block size, x.
            block_y: Block size, y.
            block_z: Block size, z.
            family: Kernel family (gemm, collective, ...).
            name: Kernel name as the tool prints it.
        """

    @overload
    def view(
        self,
        name: Literal["kernel_by_rank"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        only_family: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Kernel time by process and name, per run and tool: where one rank spends more than the others. A row is a
        process (labelled by its rank) and a kernel name. Launches without a duration count as instances only.

        Columns:
            run: Run (one workload in one configuration).
            tool: Profiler: nsys, ncu or kineto. Never add them up: they saw the same launches.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile, one recording of one tool.
            process_id: OS process; key of `processes`.
            time_pct: Share of the clipped kernel time of this process, to one decimal.
            total_ns: Sum of duration_ns.
            clipped_ns: The same, with kernels whose end cannot be true (kernel_overruns) ended where the next one
                begins.
            instances: Kernel launches.
            avg_ns: Mean duration, to one decimal.
            median_ns: Median duration: the mean of the middle two for an even number of launches.
            min_ns: Shortest duration.
            max_ns: Longest duration.
            stddev_ns: Sample standard deviation (n - 1), to one decimal; 0 for a single launch.
            family: Kernel family (gemm, collective, ...).
            name: Kernel name as the tool prints it.
        """

    @overload
    def view(
        self,
        name: Literal["kernel_device_samples"],
        *,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """GPU samples taken while each kernel ran: clock, activity of SMs and tensor cores, memory throughput.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys (GPU metrics) or kineto (counter events).
            profile_id: Profile.
            gpu: Product name.
            kernel_key: Canonical name of the kernel.
            metric: Name as the tool gives it, without the unit.
            unit: hz, %, or what the tool writes.
            samples: Samples while it ran.
            sampled_kernels: Executions with at least one sample.
            sampled_ns: Duration of these executions.
            mean: Mean of the values.
            minimum: Smallest value.
            maximum: Largest value.
            stddev: Sample standard deviation (n - 1) of the means of the executions; NULL for a single one.
            device_id: The GPU.
        """

    @overload
    def view(
        self,
        name: Literal["kernel_launch_summary", "cuda_kern_exec_sum"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Kernels by the call that launched them, per process, thread and device: the rows of `nsys stats
        cuda_kern_exec_sum`, plus percentiles of the whole. kernel_launch_trace explains each time. Launches that were
        not recorded are missing, so the kernel totals can be below those of kernel_summary.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same launches.
            rank: Rank of the process; NULL where unknown.
            process_id: OS process.
            thread: OS thread id of the caller.
            device: Device ordinal within the process.
            instances: Kernels.
            queued: Kernels that began after the call had ended; the queue times are theirs.
            total_avg_ns: Mean of the whole: call, queue and kernel; to one decimal, as all means.
            total_median_ns: Median of the whole.
            total_min_ns: Shortest.
            total_max_ns: Longest.
            total_stddev_ns: Sample standard deviation (n - 1), to one decimal; 0 for a single kernel.
            total_p5_ns: 5th percentile, interpolated linearly between the two nearest.
            total_p95_ns: 95th percentile, interpolated the same way.
            api_avg_ns: Mean duration of the call.
            api_median_ns: Median duration of the call.
            queue_avg_ns: Mean queue time; NULL where no kernel queued.
            queue_median_ns: Median queue time.
            queue_max_ns: Longest queue time.
            kernel_avg_ns: Mean duration of the kernel.
            kernel_median_ns: Median duration of the kernel.
            kernel_ns: Sum of the durations of the kernels.
            api: Function that launched them.
            name: Kernel name as the tool prints it.
        """

    @overload
    def view(
        self,
        name: Literal["kernel_launch_trace", "cuda_kern_exec_trace"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Each kernel with the call that launched it, in order of launch: the rows of `nsys stats cuda_kern_exec_trace`.
        total = api + queue + kernel time where the kernel began after the call had ended. A kernel that began earlier
        did not queue: queue_ns is NULL. One graph launch has a row for each of its kernels. Kernels whose launch was
        not recorded (sliced captures) are not here: kernels.launch_id is NULL. ncu has no timeline, so no rows.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same launches.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; starts are comparable only within one.
            process_id: OS process.
            thread: OS thread id of the caller.
            device: Device ordinal within the process.
            stream: Stream id within the process.
            api: Function that launched it.
            api_start_ns: Start of the call, relative to the profile's origin.
            api_ns: Duration of the call.
            queue_ns: End of the call to start of the kernel; NULL where the kernel began before that end.
            start_ns: Start of the kernel, relative to the profile's origin.
            kernel_ns: Duration of the kernel.
            total_ns: Start of the call to the later of the two ends.
            name: Kernel name as the tool prints it.
            kernel_id: The kernel; key of `kernels`.
        """

    @overload
    def view(
        self,
        name: Literal["kernel_overruns"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Kernels whose duration cannot be true: a stream runs one kernel after the other, but these still run when the
        second kernel after them begins (kernels.overrun_ns). Some drivers record a late end, or none, if the GPU
        stalls (seen on AMD's MI355): sums of durations then count the time of other kernels twice. Busy time, steps
        and shares end such a kernel where the next one begins; kernel totals are shown both ways (clipped_ns). A
        trace without such kernels has no row.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same launches.
            rank: Rank; NULL where unknown.
            profile_id: Profile; starts are comparable only within one.
            window_index: Capture window of the process.
            process_id: OS process.
            device_id: The physical GPU.
            stream: Stream of the kernel.
            kernel_id: The kernel.
            name: Its name as the tool prints it.
            start_ns: Its start, relative to the profile's origin.
            duration_ns: Its duration as recorded.
            next_start_ns: Start of the next kernel in the stream.
            overrun_ns: What it lasts beyond that.
        """

    @overload
    def view(
        self,
        name: Literal["kernel_page_faults"],
        *,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Kernels that page faults of unified memory held up, by name: how much of their time lies in groups of page
        faults of their GPU. Kernels without a fault have no row. A kernel that runs beside another is charged the
        same faults.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys: no other tool records page faults.
            total_ns: Sum of the durations of the kernels of that name, those without faults too.
            fault_ns: Time of them in which a group of page faults was handled on their GPU (a union).
            fault_pct: fault_ns in % of total_ns.
            faults: Page faults of groups that began while one of them ran.
            faulting: Kernels with faults.
            instances: Kernels.
            name: Kernel name.
        """

    @overload
    def view(
        self,
        name: Literal["kernel_summary", "cuda_gpu_kern_sum"],
        *,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        only_family: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Kernel time by name, per run and tool: the numbers of `nsys stats cuda_gpu_kern_sum`, plus percentiles. All
        ranks, devices and processes of a run are pooled. Launches without a duration count as instances only.

        Columns:
            run: Run (one workload in one configuration).
            tool: Profiler: nsys, ncu or kineto. Never add them up: they saw the same launches.
            time_pct: Share of the clipped kernel time of this run and tool (not of wall time), to one decimal.
            total_ns: Sum of duration_ns.
            clipped_ns: The same, with kernels whose end cannot be true (kernel_overruns) ended where the next one
                begins.
            instances: Kernel launches.
            avg_ns: Mean duration, to one decimal.
            median_ns: Median duration: the mean of the middle two for an even number of launches.
            min_ns: Shortest duration.
            max_ns: Longest duration.
            stddev_ns: Sample standard deviation (n - 1), to one decimal; 0 for a single launch.
            p5_ns: 5th percentile, interpolated linearly between the two nearest launches.
            p95_ns: 95th percentile, interpolated the same way.
            family: Kernel family (gemm, collective, ...).
            name: Kernel name as the tool prints it.
        """

    @overload
    def view(
        self,
        name: Literal["kernel_type_breakdown"],
        *,
        per: str = ...,
        communication_pattern: str | None = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """What kinds of work each GPU (or process) ran at the same time: the seven exclusive classes of compute,
        communication and memory, CUDA graphs whose kernels are unknown, and idle, per capture window. The nine rows
        of a window sum to its span; a class that did not occur has 0 ns. HTA's kernel type table, exact to the ns.
        ncu has no timeline, so no rows.

        Parameters:
            per: 'device' or 'process': what the intervals are united over.
            communication_pattern: Regex of the kernel names that communicate; NULL: family `collective`. HTA takes
                '^nccl.*Kernel'.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown or where processes share the device.
            profile_id: Profile; key of `profiles`.
            window_index: Capture window of the process, from 0.
            process_id: OS process; NULL where several share the device.
            device_id: The physical GPU; NULL where the process used several.
            class: compute, communication, memory, all that ran at once joined by +; unknown (only graphs); idle.
            total_ns: Time in which exactly that was running.
            span_ns: First start to last end of all work of the window.
            span_pct: total_ns as a share of span_ns, to two decimals.
            busy_pct: total_ns as a share of span_ns without idle, to two decimals; NULL for idle.
        """

    @overload
    def view(
        self,
        name: Literal["kernel_view", "gpu_kernel_view"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        only_family: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """The Kernel View of the TensorBoard plugin, by name: calls, time, tensor cores, blocks per SM and occupancy of
        each kernel of a process. Means of blocks and occupancy are weighted by duration, over the calls that have the
        figure (the plugin takes a missing one as 0); NULL where none has. Tensor cores: by ncu's counters where the
        run has some, else by name.

        Columns:
            run: Run (one workload in one configuration).
            tool: Profiler: nsys, ncu or kineto. Never add them up: they saw the same launches.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            name: Kernel name as the tool prints it.
            family: Kernel family (gemm, collective, ...).
            tensor_cores: Runs on tensor cores; NULL where unknown.
            time_pct: Share of the summed kernel time of the process, to two decimals.
            calls: Launches.
            total_ns: Sum of duration_ns.
            avg_ns: Mean duration, to one decimal.
            max_ns: Longest duration.
            min_ns: Shortest duration.
            blocks_per_sm: Mean blocks of the grid per SM, to two decimals.
            estimated_occupancy_pct: Mean estimated occupancy, to two decimals (Kineto).
        """

    @overload
    def view(
        self,
        name: Literal["kernels_joined"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_step: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        only_family: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """One row per launch of the run's best undisturbed tool (timeline_kernels), with what the other tools know about
        it, and how certain that is. Never add up the three durations: they come from different executions. Values of
        the launch's own row come first; missing ones come from Kineto and ncu. If the launch itself is matched,
        operator and shapes are Kineto's, as NVTX ranges may show an outer operator. A launch that no other tool
        recorded keeps its row. metrics repeats the counters of a configuration in each of its launches: leave the
        column out for long runs.

        Columns:
            run: Run.
            tool: Tool of the row: nsys or kineto.
            rank: Rank; NULL where unknown.
            profile_id: Profile of the row.
            process_id: OS process.
            kernel_id: The launch; key of `kernels`.
            launch_index: Order of launch in the process.
            stream: Stream.
            start_ns: Start in `tool`, relative to the profile's origin.
            duration_ns: Duration in `tool`: the one to quote.
            name: Kernel name as `tool` prints it.
            kernel_key: Canonical name.
            family: Kernel family.
            grid_x: Grid size, x.
            grid_y: Grid size, y.
            grid_z: Grid size, z.
            block_x: Block size, x.
            block_y: Block size, y.
            block_z: Block size, z.
            nsys_duration_ns: Duration under nsys.
            kineto_duration_ns: Duration under Kineto: of the launch, else the median of its configuration.
            kineto_grade: Where that is from: own, launch, configuration or configuration of any rank.
            kineto_kernel_id: The same launch in Kineto, where one is certain.
            ncu_duration_ns: Duration under ncu: of the launch, else the median of its configuration.
            ncu_kernel_id: The same launch under ncu, where one is certain.
            ncu_configuration_id: The configuration otherwise; key of ncu_by_config.
            clock_control: ncu --clock-control behind it, where known.
            cache_control: ncu --cache-control behind it, where known.
            metrics_grade: Where ncu_duration_ns and metrics are from: launch, configuration or configuration of any
                rank.
            metrics: ncu's counters: of the launch, else the medians of ncu_by_config.
            step: Training step.
            step_source: nsys, kineto or kineto launch.
            phase: forward, backward or optimizer.
            phase_source: nsys, kineto, kineto launch, kineto configuration or kineto configuration of any rank.
            op: Innermost operator that is known.
            op_shapes: Its input shapes.
            op_source: Where both are from, as above.
            module: Innermost nn.Module.
            module_source: Likewise.
            range_path: Enclosing ranges, outermost first.
            range_path_source: nsys, kineto or kineto launch.
        """

    @overload
    def view(
        self,
        name: Literal["launch_statistics", "get_cuda_kernel_launch_stats"],
        *,
        long_call_ns: int = ...,
        long_delay_ns: int = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """The cost of launches, per process: three rows, for the duration of the launch calls, that of the work they
        launched, and the delay from the end of the call to the start of the work (0 if it began earlier). HTA's
        launch statistics: calls longer than the cutoff, work shorter than its own call, long delays. A graph launch
        is one launch. Calls that launched nothing that was recorded are left out. ncu has no timeline, so no rows.

        Parameters:
            long_call_ns: A call longer than this, in ns, is an outlier.
            long_delay_ns: A delay longer than this, in ns, is an outlier.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same launches.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            quantity: call_duration, gpu_duration or launch_delay.
            launches: Launch calls.
            avg_ns: Mean, to one decimal.
            stddev_ns: Sample standard deviation; NULL for a single launch.
            min_ns: Minimum.
            p25_ns: First quartile.
            median_ns: Median.
            p75_ns: Third quartile.
            max_ns: Maximum.
            outliers: Long calls; work shorter than its call; long delays.
            outliers_pct: outliers as a share of launches, to one decimal.
        """

    @overload
    def view(
        self,
        name: Literal["match_report"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """How much of one tool's launches could be matched with those of another tool in the same run, by grade, and why
        the rest is unmatched. A row is one grade and reason for one pair of tools and rank; the launches and times of
        a tool, other tool and rank sum to all of its launches. Grades and reasons as in tool_match.

        Columns:
            run: Run.
            tool: Tool whose launches are counted.
            other_tool: The tool they are looked for in.
            rank: Rank; NULL where unknown.
            grade: launch, configuration, key, short_name or none.
            reason: Why it is not grade launch.
            launches: Launches of that grade.
            all_launches: All launches of this tool on this rank.
            total_ns: Sum of their durations in `tool`.
            all_ns: Sum of the durations of all launches.
            time_pct: Share of the time, to one decimal.
        """

    @overload
    def view(
        self,
        name: Literal["memory_bandwidth", "get_memory_bw_summary"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Bandwidth of copies and sets, per process, GPU and direction: HTA's memory bandwidth summary. The bandwidth is
        all bytes over the time in which at least one such operation ran (a union); point_* are HTA's figures: over
        the points where the summed bandwidth changes, equally weighted, without those at 0. Operations without bytes
        count in `operations` only. ncu has no timeline, so no rows.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            device_id: The physical GPU.
            kind: memcpy, memset, migration or decompression (its rate is of compressed bytes).
            direction: HtoD, DtoH, DtoD, ...; NULL for memset.
            operations: Copies or sets.
            bytes: Bytes that they moved or set.
            total_ns: Sum of their durations, as written.
            active_ns: Time in which at least one with known bytes ran, by its finer duration (memory_ops).
            bandwidth_bytes_per_s: Bytes over active_ns; NULL where none has bytes and a duration.
            link_bytes_per_s: Of copies between host and device: what PCIe carries in each direction, over all 16
                lanes and in the GPU's own generation (gpu_peaks); NULL for others, and where the GPU or how its host
                reaches it is unknown.
            link_pct: bandwidth_bytes_per_s in % of it, to one decimal.
            peak_bytes_per_s: Highest sum of the bandwidths of what ran at once.
            points: Changes of that sum, those to 0 left out.
            point_mean: Mean over them, in bytes per second.
            point_stddev: Sample standard deviation over them.
            point_min: Smallest of them.
            point_p25: First quartile.
            point_median: Median.
            point_p75: Third quartile.
        """

    @overload
    def view(
        self,
        name: Literal["memory_bandwidth_series", "get_memory_bw_time_series"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Bandwidth of copies and sets over time, per process, GPU and direction: a row where it changes, and it holds
        until the next row. Each operation moves its bytes evenly over its duration; operations at the same time add
        up. Operations without bytes or without duration have no bandwidth and are left out. ncu has no timeline, so
        no rows.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; times are comparable only within one.
            window_index: Capture window of the process, from 0.
            process_id: OS process.
            device_id: The physical GPU.
            kind: memcpy, memset, migration or decompression (its rate is of compressed bytes).
            direction: HtoD, DtoH, DtoD, ...; NULL for memset.
            at_ns: Time of the change, relative to the profile's origin.
            running: Operations that run from at_ns on.
            bandwidth_bytes_per_s: Their bandwidth.
        """

    @overload
    def view(
        self,
        name: Literal["memory_by_operator", "memory_view"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Memory by operator, per process and device: what each operator allocated and by how much it grew the memory.
        Self counts the allocations and releases in the operator but not in its inner operators; total includes these.
        A release counts for the operator in which it happened, which may not be the one that allocated.

        Columns:
            run: Run (one workload in one configuration).
            tool: kineto.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            device_type: cpu, cuda or the number the tool printed.
            device: Device ordinal; NULL for the CPU.
            name: Operator; NULL: outside all operators.
            calls: Calls of the operator, those that allocate nothing included.
            increase_bytes: Allocated less released.
            self_increase_bytes: That, of its own.
            allocations: Allocations.
            self_allocations: Of its own.
            allocated_bytes: Bytes allocated.
            self_allocated_bytes: Of its own.
        """

    @overload
    def view(
        self,
        name: Literal["memory_curve"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Memory over time, per process and device: a row per allocation or release that was recorded, in order. Under
        the PyTorch profiler totals are its allocator's own, as recorded (NULL in traces before PyTorch 1.10); nsys
        records CUDA's own allocations, and their total is net_bytes, which counts from the first event.

        Columns:
            run: Run (one workload in one configuration).
            tool: kineto or nsys. Never add them up: what PyTorch hands out lies within what it asked CUDA for.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            window_index: Capture window of the process, from 0.
            device_type: cpu, cuda or the number the tool printed.
            device: Device ordinal; NULL for the CPU.
            at_ns: Time, relative to the profile's origin.
            bytes: Bytes allocated, negative when released.
            allocated_bytes: Allocated on the device after the event.
            reserved_bytes: Reserved by the caching allocator after the event.
            net_bytes: Allocated less released since the first event of the window.
            allocation_id: The event; key of `allocations`.
        """

    @overload
    def view(
        self,
        name: Literal["memory_events"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Allocations with their releases, as the plugin's Memory Events: who allocated how much, when, and how long. A
        row per allocation, and per release of what was allocated before the capture. A release belongs to the last
        allocation of its address, if that had its size; traces of PyTorch before 1.10 have no addresses, and each
        release is a row of its own.

        Columns:
            run: Run (one workload in one configuration).
            tool: kineto or nsys.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            window_index: Capture window of the process, from 0.
            device_type: cpu, cuda or the number the tool printed.
            device: Device ordinal; NULL for the CPU.
            name: Operator that allocated; NULL: none, or before the capture.
            bytes: Bytes allocated.
            allocated_at_ns: When, relative to the profile's origin; NULL: before the capture.
            released_at_ns: When it was released; NULL: not in the capture.
            held_ns: From allocation to release; NULL where one of them is not known.
            allocation_id: The allocation, else the release; key of `allocations`.
        """

    @overload
    def view(
        self,
        name: Literal["memory_op_size_summary", "cuda_gpu_mem_size_sum"],
        *,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Sizes of memory copies, sets and migrations by operation, per run and tool: the numbers of `nsys stats
        cuda_gpu_mem_size_sum` (which prints MB of 1,000,000 bytes), plus percentiles. All ranks, devices and
        processes of a run are pooled. Where no size was recorded, the sizes are NULL.

        Columns:
            run: Run (one workload in one configuration).
            tool: Profiler: nsys or kineto. Never add them up: they saw the same operations.
            total_bytes: Sum of the bytes moved or set.
            operations: Number of operations.
            avg_bytes: Mean size, to one decimal.
            median_bytes: Median size: the mean of the middle two for an even number of operations.
            min_bytes: Smallest size.
            max_bytes: Largest size.
            stddev_bytes: Sample standard deviation (n - 1), to one decimal; 0 for a single operation.
            p5_bytes: 5th percentile, interpolated linearly between the two nearest operations.
            p95_bytes: 95th percentile, interpolated the same way.
            kind: memcpy, memset, migration (unified memory) or decompression (its bytes are the compressed ones).
            direction: HtoD, DtoH, ...; NULL for memset.
        """

    @overload
    def view(
        self,
        name: Literal["memory_op_summary", "cuda_gpu_mem_time_sum"],
        *,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Memory copies, sets and unified-memory migrations, per run and tool: time and bytes by kind and direction.

        Columns:
            run: Run (one workload in one configuration).
            tool: Profiler: nsys or kineto. Never add them up: they saw the same operations.
            kind: memcpy, memset, migration (unified memory) or decompression (its bytes are the compressed ones).
            direction: HtoD, DtoH, ...; NULL for memset.
            source_memory: pageable, pinned, device, ...; NULL where the tool does not record it.
            destination_memory: As source_memory, for the destination.
            time_pct: Share of the summed time of memory operations of this run and tool, to one decimal.
            total_ns: Sum of duration_ns.
            operations: Number of operations.
            avg_ns: Mean duration, to one decimal.
            median_ns: Median duration.
            min_ns: Shortest duration.
            max_ns: Longest duration.
            stddev_ns: Sample standard deviation (n - 1), to one decimal; 0 for a single operation.
            total_bytes: Bytes moved or set.
            bytes_per_s: Bytes divided by time (the finer duration where there is one), where both are known.
        """

    @overload
    def view(
        self,
        name: Literal["memory_peak"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Peak memory per process and device: the highest total that the allocator recorded, when, and in which
        operator, and its share of the device's memory where known. NULL where the trace holds no totals (before
        PyTorch 1.10).

        Columns:
            run: Run (one workload in one configuration).
            tool: kineto or nsys.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            window_index: Capture window of the process, from 0.
            device_type: cpu, cuda or the number the tool printed.
            device: Device ordinal; NULL for the CPU.
            peak_allocated_bytes: Greatest allocated total.
            peak_at_ns: When it was first reached, relative to the profile's origin.
            peak_op: Innermost operator then; NULL where none is known.
            peak_reserved_bytes: Greatest reserved total.
            memory_bytes: Memory of the device.
            peak_pct: peak_allocated_bytes as a share of memory_bytes, to one decimal.
            allocations: Allocations.
            releases: Releases.
            allocated_bytes: Sum of the allocations.
            net_bytes: Allocated less released over the window.
        """

    @overload
    def view(
        self,
        name: Literal["mfu"],
        *,
        assume_gpu: str | None = ...,
        force_gpu: bool = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """How much of a GPU's peak the model uses (MFU): the operations of its products, convolutions and attention in
        the judged window. Operations come from the shapes of operators (shape_work): Kineto with record_shapes, nsys
        with emit_nvtx(record_shapes=True). A call whose kernels share its work counts once. They are divided by the
        whole window of time_tree, idle time and communication included, and by the datasheet's dense peak for the
        type of the operands: TF32 where FP32 products ran on tensor cores. A row is a type of operands on a GPU; the
        mfu_pct of its rows add up. Other operators count as nothing, as usual.

        Parameters:
            assume_gpu: Product name for the peaks, where the capture lacks it and its compute capability and SMs fit.
            force_gpu: Whether assume_gpu is taken for every GPU, unchecked.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process whose window it is; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process whose window it is.
            window_index: Capture window of the process, from 0.
            device_id: The physical GPU.
            gpu: Product name of the GPU; NULL where unknown.
            peak_key: Peak that the operands' type has, in the words of roofline: tensor_bf16, fp32, ...; NULL if
                unknown.
            mfu_pct: achieved_flop_per_s as a share of peak_flop_per_s; NULL where the peak is unknown.
            flop_per_step: work_flop by the steady steps of the window; NULL where it has none.
            achieved_flop_per_s: work_flop by the time of the window.
            peak_flop_per_s: Dense peak by the datasheet; NULL where unknown.
            work_flop: Operations in the window: a multiply-add is two.
            calls: Calls of operators whose operations are known.
            kernel_ns: Time of their kernels.
            covered_pct: Of the time of all kernels that compute products, convolutions or attention, the share in all
                rows.
            window_ns: Length of the window.
            steps: Steady steps of the window; NULL without.
            reason: Why the peak is unknown.
        """

    @overload
    def view(
        self,
        name: Literal["migration_summary"],
        *,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Migrations of unified memory by what caused them, per run: page faults stall the kernels that hit them,
        prefetches do not.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto; Kineto records no causes.
            total_ns: Sum of duration_ns.
            migrations: Number of migrations.
            total_bytes: Sum of the bytes.
            avg_bytes: Mean size, to one decimal: small ones cost most per byte.
            bytes_per_s: total_bytes over total_ns.
            cause: page_fault, prefetch, speculative_prefetch, eviction, access_counters, unknown; NULL where not
                recorded.
            direction: HtoD, DtoH or DtoD.
        """

    @overload
    def view(
        self,
        name: Literal["module_summary", "module_view"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """The Module View of the TensorBoard plugin, per process: calls, operators, and time on the host and on the GPU
        of each nn.Module. Self excludes the modules inside a module; total includes them. GPU time is a sum of kernel
        durations (concurrent ones count separately), including backward kernels, which belong to the module of their
        forward operators; backward_total_ns and backward_self_ns are their part. A call inside several modules counts
        once for each of these names.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            module: Module, as the tool names it.
            parent: Module around it, the first by name where calls differ; NULL for the outermost.
            calls: Calls of its forward.
            operators: Operators called in it, those inside other operators or modules not counted.
            host_total_ns: Sum of the calls' durations.
            host_self_ns: That, less the calls of the modules inside it.
            device_total_ns: Kernels launched in it and in the modules inside it; NULL where no kernel has a known
                module.
            device_self_ns: Kernels launched in it.
            backward_total_ns: The part of device_total_ns that is backward.
            backward_self_ns: The part of device_self_ns that is backward.
        """

    @overload
    def view(
        self,
        name: Literal["mpi_call_summary", "mpi_event_sum", "mpi_sum"],
        *,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """MPI events by function, per run: the numbers of `nsys stats mpi_event_sum`. A call that ends several requests
        is an event for each.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys: no other tool records MPI.
            time_pct: Share of the summed time of all MPI events of this run, to one decimal.
            total_ns: Sum of duration_ns.
            instances: Number of events.
            avg_ns: Mean duration, to one decimal.
            median_ns: Median duration: the mean of the middle two for an even number.
            min_ns: Shortest duration.
            max_ns: Longest duration.
            stddev_ns: Sample standard deviation (n - 1), to one decimal; 0 for a single one.
            ranks: Distinct processes.
            kind: p2p, collective, start_wait or other.
            name: Function; NULL where the report does not say.
        """

    @overload
    def view(
        self,
        name: Literal["mpi_call_trace", "mpi_event_trace"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Each MPI event, in order: the rows of `nsys stats mpi_event_trace`.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys: no other tool records MPI.
            rank: Rank of the process; NULL where unknown.
            start_ns: Start, relative to the profile's origin.
            duration_ns: Duration; NULL for a call that was never seen to end.
            name: Function.
            kind: p2p, collective, start_wait or other.
            peer_rank: The other rank of a p2p call, in its communicator.
            root_rank: Root of a collective that has one, in its communicator.
            tag: Tag of a p2p message.
            bytes: Size of a p2p message; of a collective what this rank sends.
            receive_bytes: What this rank receives in a collective.
            pid: OS process id.
            thread: OS thread id of the caller.
            profile_id: Profile; starts are comparable only within one.
            process_id: OS process.
            mpi_call_id: The event; key of `mpi_calls`.
        """

    @overload
    def view(
        self,
        name: Literal["mpi_message_size_summary", "mpi_msg_size_sum"],
        *,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Sizes of MPI messages by function, per run: the numbers of `nsys stats mpi_msg_size_sum`. A collective sends
        and receives: two rows.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys: no other tool records MPI.
            total_bytes: Sum of the sizes.
            instances: Number of messages: p2p events, and collectives that send (receive) anything.
            avg_bytes: Mean size, to one decimal.
            median_bytes: Median size: the mean of the middle two for an even number.
            min_bytes: Smallest size.
            max_bytes: Largest size.
            stddev_bytes: Sample standard deviation (n - 1), to one decimal; 0 for a single one.
            source: p2p, coll_send or coll_recv.
            name: Function; NULL where the report does not say.
        """

    @overload
    def view(
        self,
        name: Literal["nccl_overlap", "nccl_gpu_overlap_trace"],
        *,
        communication_pattern: str | None = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """How much of each kernel's time overlapped with other kernels of the same process and GPU: communication (NCCL)
        and compute, as in `nsys recipe nccl_gpu_overlap_trace`, summed by kernel name. Exact to the ns: unions of
        intervals. A kernel that communicates with communication_overlap_pct = 0 and compute_overlap_pct = 100 is
        fully hidden. The recipe identifies NCCL kernels by NVTX ranges; here by family, or by a pattern of names:
        '^nccl'. Kernels without a start or a duration above 0 are left out, as there. ncu has no timeline, so no
        rows.

        Parameters:
            communication_pattern: Regex of the kernel names that communicate; NULL: family `collective`.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same launches.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            window_index: Capture window of the process, from 0.
            process_id: OS process.
            device_id: The physical GPU.
            class: communication or compute: what the kernel is.
            instances: Kernels.
            total_ns: Sum of their durations.
            communication_overlap_ns: Time in which another kernel that communicates ran, summed over the kernels.
            compute_overlap_ns: Time in which another kernel that computes ran, as above.
            communication_overlap_pct: communication_overlap_ns as a share of total_ns, to one decimal.
            compute_overlap_pct: compute_overlap_ns as a share of total_ns, to one decimal.
            name: Kernel name as the tool prints it.
        """

    @overload
    def view(
        self,
        name: Literal["ncu_by_config"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_family: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """What ncu measured of each kernel and launch configuration, joined over passes and reports: the median of every
        counter, with its spread.

        Columns:
            configuration_id: Configuration: run, rank, kernel_key, grid, block, clock and cache settings, GPU.
            run: Run.
            rank: Rank; NULL where unknown.
            gpu: Product name of the GPU; NULL where no report has it.
            compute_capability: Compute capability, such as '9.0'.
            sm_count: Streaming multiprocessors, where known.
            name: Kernel name as ncu prints it.
            short_name: Base name of the kernel.
            kernel_key: Canonical name, the same in the three tools.
            family: Family of the kernel.
            grid_x: Grid size, x.
            grid_y: Grid size, y.
            grid_z: Grid size, z.
            block_x: Block size, x.
            block_y: Block size, y.
            block_z: Block size, z.
            clock_control: ncu --clock-control, where known.
            cache_control: ncu --cache-control, where known.
            summarised: True where ncu --print-summary printed averages: single launches are not known then.
            simulated: True where a capture behind it is marked as simulated.
            launches: Launches measured, over all reports.
            duration_ns: Median duration under ncu, rounded to 1 ns.
            min_duration_ns: Shortest.
            max_duration_ns: Longest.
            total_ns: Sum of the durations; duration_ns times launches where not every launch has one.
            duration_definition: The counter behind duration_ns.
            metrics: Median of each counter over the launches that hold it.
            metrics_min: Least value of each counter.
            metrics_max: Greatest value of each counter.
        """

    @overload
    def view(
        self,
        name: Literal["ncu_metrics"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_family: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Every ncu counter, one row per launch and metric, in ncu's base units (ns, byte, hz, cycle, %). One metric of
        one launch is shorter to write: SELECT metrics['dram__bytes.sum'] FROM kernels WHERE tool = 'ncu'.

        Columns:
            run: Run (one workload in one configuration).
            rank: Rank of the process; NULL where unknown.
            kernel_id: The launch; key of `kernels`.
            ncu_id: ncu's own ID of the launch within its report.
            family: Kernel family (gemm, collective, ...).
            name: Kernel name as ncu prints it.
            metric: Raw metric name, such as dram__bytes.sum.
            value: Value in base units; NULL where ncu printed n/a.
        """

    @overload
    def view(
        self,
        name: Literal["ncu_plan"],
        *,
        cover: float = ...,
        which_run: str | None = ...,
        which_rank: int | None = ...,
        metric_set: str = ...,
        budget_s: float | None = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Which launches of a run are worth counting with ncu: one per kernel and configuration, up to a share of the
        GPU time. A row is one start of the program under ncu: a filter that matches one kernel, the number of
        matching launches to skip, and the number to measure. The plan is for the process of the lowest rank of each
        run. Collectives are left out: ncu replays a launch alone, and a collective would wait for the others. The
        warm-up is skipped: the first recorded step, or without steps the first fifth of the launches; a configuration
        that occurs only there is measured there. Nearby launches of one kernel are measured in one start if that is
        cheaper than two. Where it is cheaper still, one start without a filter measures all that lies between the
        first and the last launch that are wanted (of a Kineto trace a whole step): everything but collectives, which
        the wrapper leaves out. An nsys capture is assumed to begin with the program. A Kineto trace begins later: the
        plan skips as many launches as the steps before it would have had if they were like its own, and measures a
        whole step of the kernel. The same launches recur only if the program repeats the same work. The estimate is
        rough, and none of it was measured: passes 10 (basic), 12 (minimal), 16 (roofline), 30 (detailed), 42 (full);
        a pass takes twice the kernel's own duration (base clock, cold caches) and 25 ms, a start 30 s and the time
        until its last launch.

        Parameters:
            cover: Share of the measurable GPU time, in percent, that the chosen configurations cover together.
            which_run: Only this run.
            which_rank: The rank to plan for; NULL: the lowest.
            metric_set: Set of counters: minimal, basic, roofline, detailed or full.
            budget_s: Seconds that all starts may take together; NULL: no bound. Those with the most time per second
                fit first.

        Columns:
            run: Run.
            tool: Tool whose timeline is planned from: nsys or kineto.
            rank: Rank to measure; NULL where unknown.
            kernel: What ncu is to find: a base name, or regex:EXPRESSION found in what name_base says; NULL: all.
            word: The word that the filter finds in the demangled name; NULL: it finds a base name, or all.
            name_base: What the filter is compared with: function (base names) or demangled; NULL without a filter.
            launch_skip: Matching launches to skip.
            launch_count: Launches that are measured.
            configurations: Launch configurations that these stand for.
            total_ns: GPU time of these configurations in the run's process.
            time_pct: Its share of the measurable GPU time, to one decimal.
            passes: Passes per launch, estimated.
            estimated_s: Seconds that the start takes, estimated.
            fits: Whether it is within the budget.
        """

    @overload
    def view(
        self,
        name: Literal["nvtx_gpu_projection", "nvtx_gpu_proj_sum"],
        *,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """GPU time of CPU ranges by name, per run and tool: the numbers of `nsys stats nvtx_gpu_proj_sum`, plus
        percentiles. A range is projected on the GPU from the first start to the last end of the work launched within
        it, nested ranges included; nvtx_gpu_projection_trace says what counts and what is left out. All ranks,
        processes and threads of a run are pooled. Ranges nest and threads run side by side: the totals are not wall
        time. nsys prints the range as domain:name. Names are without the numbers (op_id, seq, sizes) that PyTorch
        writes into NVTX texts: nsys has a row for each of those texts.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            total_ns: Sum of the projected durations.
            gpu_ns: Sum of the durations of the work itself, once also where a range lies within one of its name; NULL
                where only nsys's table of projections is there.
            range_ns: Sum of the durations of the ranges on the CPU.
            instances: Ranges that launched work.
            avg_ns: Mean projected duration, to one decimal.
            median_ns: Median: the mean of the middle two for an even number of ranges.
            min_ns: Shortest projected duration.
            max_ns: Longest projected duration.
            stddev_ns: Sample standard deviation (n - 1), to one decimal; 0 for a single range.
            p5_ns: 5th percentile, interpolated linearly between the two nearest ranges.
            p95_ns: 95th percentile, interpolated the same way.
            launches: Launching calls: what nsys counts as GPU operations.
            operations: Kernels, copies and sets: a graph launch has one launch and many of them. NULL as gpu_ns is.
            avg_depth: Mean number of ranges around it, to one decimal.
            kind: nvtx_push_pop, nvtx_start_end, annotation, operator, module or step.
            domain: NVTX domain; NULL for the default domain and on Kineto data.
            name: Name of the range.
        """

    @overload
    def view(
        self,
        name: Literal["nvtx_gpu_projection_trace", "nvtx_gpu_proj_trace"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """CPU ranges projected on the GPU, one row per range that launched work: the rows of `nsys stats
        nvtx_gpu_proj_trace`. The projection reaches from the first start to the last end of the kernels, copies and
        sets whose launching call lies within the range, on the thread of the range (of one that ends on another,
        which nsys leaves out: where it began). Work counts for every range around its launch, so projections do not
        sum to wall time. On nsys data the ranges are those of NVTX, on Kineto data annotations, operators, modules
        and steps. As in nsys, it leaves out ranges without GPU work, or never closed, and work whose launching call
        was not recorded. For a profile read from the table of nsys stats (`range_projections`), the rows are those
        that nsys printed.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; starts are comparable only within one.
            process_id: OS process.
            thread: OS thread id of the range and of the calls.
            start_ns: First start of the work, relative to the profile's origin.
            projected_ns: First start to last end of the work.
            gpu_ns: Sum of the durations of the work: beyond projected_ns where streams overlap. NULL for printed
                rows.
            range_start_ns: Start of the range itself.
            range_ns: Duration of the range itself.
            launches: Launching calls: what nsys counts as GPU operations.
            operations: Kernels, copies and sets: a graph launch has one launch and many of them. NULL for printed
                rows.
            depth: Ranges around it on its thread.
            parent_id: Innermost range around it.
            range_id: The range; key of `ranges`.
            kind: nvtx_push_pop, nvtx_start_end, annotation, operator, module or step.
            domain: NVTX domain; NULL for the default domain and on Kineto data.
            name: Name of the range.
        """

    @overload
    def view(
        self,
        name: Literal["nvtx_kernel_summary", "nvtx_kern_sum"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Kernels by the NVTX ranges that they were launched in: the numbers of `nsys stats nvtx_kern_sum`, plus run and
        rank. A kernel counts for every range of the launching thread around its call, push/pop and start/end alike,
        so totals of nested ranges count a kernel several times. Names of ranges are without the numbers (op_id, seq,
        sizes) that PyTorch writes into NVTX texts. Kernels in no range form a row without a name, as in nsys.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown.
            process_id: OS process.
            pid: OS process id.
            thread: OS thread id of the range and of the calls; NULL where the call was not recorded.
            total_ns: Sum of the durations of the kernels.
            instances: Kernels.
            ranges: Ranges that hold at least one of them.
            avg_ns: Mean duration, to one decimal.
            median_ns: Median duration: the mean of the middle two for an even number.
            min_ns: Shortest duration.
            max_ns: Longest duration.
            stddev_ns: Sample standard deviation (n - 1), to one decimal; 0 for a single kernel.
            kind: nvtx_push_pop, nvtx_start_end, annotation, operator, module or step; NULL for kernels in no range.
            domain: NVTX domain; NULL for the default domain and on Kineto data.
            name: Name of the range; NULL for kernels in no range.
            kernel: Kernel name as the tool prints it.
        """

    @overload
    def view(
        self,
        name: Literal["nvtx_pushpop_trace"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Each push/pop range with its place on the stack of its thread: the rows of `nsys stats nvtx_pushpop_trace`.
        Its stack is that of push/pop ranges alone: start/end ranges around it do not count.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys: the PyTorch profiler has no NVTX ranges.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; starts are comparable only within one.
            process_id: OS process.
            pid: OS process id.
            thread: OS thread id.
            start_ns: Start, relative to the profile's origin.
            duration_ns: Duration.
            children_ns: Sum of the durations of the ranges directly within it.
            own_ns: Duration without these.
            level: Ranges around it.
            children: Ranges directly within it.
            parent_id: Innermost range around it; NULL where there is none.
            range_id: The range; key of `ranges`.
            domain: NVTX domain; NULL for the default domain.
            name: Name of the range.
        """

    @overload
    def view(
        self,
        name: Literal["nvtx_style_summary", "nvtx_pushpop_sum"],
        *,
        style: str = ...,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """CPU-side ranges of one style by name, per run: the numbers of `nsys stats nvtx_pushpop_sum`, and with style :=
        'start_end' those of nvtx_startend_sum. Shares are of the ranges of that style. Names are without the numbers
        (op_id, seq, sizes) that PyTorch writes into NVTX texts: nsys has a row for each of those texts.

        Parameters:
            style: push_pop or start_end.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys: the PyTorch profiler has no NVTX ranges.
            time_pct: Share of the summed time of all these ranges of this run, to one decimal.
            total_ns: Sum of duration_ns.
            instances: Number of ranges.
            avg_ns: Mean duration, to one decimal.
            median_ns: Median duration: the mean of the middle two for an even number.
            min_ns: Shortest duration.
            max_ns: Longest duration.
            stddev_ns: Sample standard deviation (n - 1), to one decimal; 0 for a single one.
            domain: NVTX domain; NULL for the default domain.
            name: Name of the range.
        """

    @overload
    def view(
        self,
        name: Literal["nvtx_summary", "nvtx_sum"],
        *,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """CPU-side ranges by name, per run and tool: the numbers of `nsys stats nvtx_sum`, plus percentiles. On nsys
        data the NVTX ranges and the directives of OpenACC and OpenMP, on Kineto data the annotations, operators,
        modules and steps. Marks and GPU-side copies are left out. Ranges nest: their totals are not wall time. A
        range that was never closed counts as an instance only (nsys itself lets it last to the end of the capture).
        nsys prints the range as domain:name. Names are without the numbers (op_id, seq, sizes) that PyTorch writes
        into NVTX texts: nsys has a row for each of those texts.

        Columns:
            run: Run (one workload in one configuration).
            tool: Profiler: nsys or kineto. Never add them up: they saw the same work.
            time_pct: Share of the summed time of all these ranges of this run and tool, to one decimal; of OpenACC
                and of OpenMP among their own.
            total_ns: Sum of duration_ns.
            instances: Number of ranges.
            avg_ns: Mean duration, to one decimal.
            median_ns: Median duration: the mean of the middle two for an even number of ranges.
            min_ns: Shortest duration.
            max_ns: Longest duration.
            stddev_ns: Sample standard deviation (n - 1), to one decimal; 0 for a single range.
            p5_ns: 5th percentile, interpolated linearly between the two nearest ranges.
            p95_ns: 95th percentile, interpolated the same way.
            kind: nvtx_push_pop, nvtx_start_end, openacc, openmp, annotation, operator, module or step; see `ranges`.
            domain: NVTX domain; NULL for the default domain and on Kineto data.
            name: Name of the range.
        """

    @overload
    def view(
        self,
        name: Literal["operator_call_sites"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Where each operator was called from: the column "call stack" of the TensorBoard plugin. A row is an operator
        with one stack of Python frames, per process. Self times add up; total times include the operators inside,
        which have rows of their own.

        Columns:
            run: Run (one workload in one configuration).
            tool: kineto.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            op: Operator.
            call_site: Innermost frame around it; NULL where no frame was open.
            call_stack: The frames around it, innermost first, joined by ';', as the plugin does.
            calls: Calls.
            device_self_ns: GPU time that it launched itself; a sum of durations.
            device_total_ns: That, and that of the operators inside it.
            host_self_ns: Host time, less the operators inside it and the API calls that it made itself.
            host_total_ns: Sum of the calls' durations.
        """

    @overload
    def view(
        self,
        name: Literal["operator_kernels"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """The kernels that each operator launched: the Kernel View of the TensorBoard plugin by properties and operator,
        per process. A row is a kernel name with one operator, grid, block, registers and shared memory. Means of
        blocks and occupancy are weighted by duration, over the calls that have the figure.

        Columns:
            run: Run (one workload in one configuration).
            tool: Profiler: nsys, ncu or kineto. Never add them up: they saw the same launches.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            op: Innermost operator that launched it; NULL where unknown.
            name: Kernel name as the tool prints it.
            grid_x: Grid size, x.
            grid_y: Grid size, y.
            grid_z: Grid size, z.
            block_x: Block size, x.
            block_y: Block size, y.
            block_z: Block size, z.
            registers_per_thread: Registers per thread.
            shared_bytes: Shared memory per block.
            tensor_cores: Runs on tensor cores; NULL where unknown.
            calls: Launches.
            total_ns: Sum of duration_ns.
            avg_ns: Mean duration, to one decimal.
            max_ns: Longest duration.
            min_ns: Shortest duration.
            blocks_per_sm: Mean blocks of the grid per SM, to two decimals.
            estimated_occupancy_pct: Mean estimated occupancy, to two decimals (Kineto).
        """

    @overload
    def view(
        self,
        name: Literal["operator_summary", "operator_view"],
        *,
        by_shapes: bool = ...,
        per: str = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """The Operator View of the TensorBoard plugin, per process, or per run over all ranks: calls, time on the GPU
        and on the host, and tensor cores, by operator; with by_shapes by operator and input shapes. Total includes
        the operators inside an operator; self excludes them. GPU time is a sum of durations of kernels and memory
        operations (concurrent ones count separately); host self time also excludes CUDA or HIP API calls. If an
        operator calls itself, its total counts the inner call twice. Left out, as in the plugin:
        DataParallel.forward, DistributedDataParallel.forward, Optimizer.*, the data loader. GPU time that none of the
        listed operators launched itself is the row (no operator). GPU figures are NULL if no GPU work of the process
        has a known operator. An operator is eligible for tensor cores if the plugin's list or newer operators
        (attention, scaled products) include it, an operator inside it is eligible, or it used them.

        Parameters:
            by_shapes: Group by input shapes too.
            per: 'process', one rank after the other, or 'run': summed over all processes that a tool recorded.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown, and per run.
            profile_id: Profile; key of `profiles`; NULL per run.
            process_id: OS process; NULL per run.
            name: Operator; (no operator) for the rest of the GPU time.
            shapes: Input shapes as the tool prints them; NULL without by_shapes.
            calls: Calls; NULL, as all but GPU time, for (no operator).
            device_self_ns: GPU time launched by the operator itself; per run, NULL where it is unknown of a process.
            device_self_pct: Share of all GPU time of the process (or run), to two decimals; NULL where that is 0.
            device_total_ns: GPU time launched by it and the operators inside it.
            host_self_ns: Host time of its own.
            host_total_ns: Sum of the calls' durations.
            tensor_core_eligible: Can run on tensor cores.
            tensor_core_self_pct: Share on tensor cores of the part of device_self_ns that is known to use them or
                not, to two decimals; NULL where that is less than half of it.
            tensor_core_total_pct: The same of device_total_ns.
        """

    @overload
    def view(
        self,
        name: Literal["os_call_summary", "osrt_sum"],
        *,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Calls of operating-system libraries by function, per run: the numbers of `nsys stats osrt_sum`, plus who made
        them. All ranks, processes and threads of a run are pooled. Threads wait in parallel: the totals are not wall
        time.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys: no other tool records them.
            time_pct: Share of the summed time of all calls of this run, to one decimal.
            total_ns: Sum of duration_ns.
            calls: Number of calls.
            avg_ns: Mean duration, to one decimal.
            median_ns: Median duration: the mean of the middle two for an even number.
            min_ns: Shortest duration.
            max_ns: Longest duration.
            stddev_ns: Sample standard deviation (n - 1), to one decimal; 0 for a single one.
            threads: Threads that made them.
            name: Function.
        """

    @overload
    def view(
        self,
        name: Literal["overhead_summary"],
        *,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Time that the profiler took from threads, and that CUDA took for loading, compiling and waiting for space, per
        run. api_calls has no row for it; it lengthens the call during which it occurred.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto.
            time_pct: Share of the summed time of all overhead of this run, to one decimal.
            total_ns: Sum of duration_ns.
            instances: Number of stretches.
            avg_ns: Mean duration, to one decimal.
            median_ns: Median duration: the mean of the middle two for an even number.
            min_ns: Shortest duration.
            max_ns: Longest duration.
            stddev_ns: Sample standard deviation (n - 1), to one decimal; 0 for a single one.
            threads: Threads that were held up; 1 per process of a PyTorch trace, which does not name them.
            source: profiler or cuda; NULL where the report does not say.
            kind: Such as buffer_flush, own or command_buffer_full; see `overheads`.
            name: What the profiler calls it.
        """

    @overload
    def view(
        self,
        name: Literal["pipeline_bubbles"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Pipeline parallelism by stage: how long each stage sends to and waits for its neighbours while its GPU does
        nothing else. A row is a process (and capture window) with a process group named as a pipeline in the trace;
        of several, the largest counts.

        Columns:
            run: Run.
            tool: kineto.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile.
            process_id: OS process.
            window_index: Capture window of the process.
            group_name: The pipeline's process group.
            stage: Place of the rank in it, from 0; NULL where unknown.
            stages: Ranks of the pipeline.
            transfers: Kernels that communicate in it.
            transfer_ns: Time in which at least one of them ran.
            bubble_ns: The part of it in which the process had no other work on the GPU.
            hidden_ns: The rest of it.
            compute_ns: Time in which the GPU had other work of the process.
        """

    @overload
    def view(
        self,
        name: Literal["profile_overview"],
        *,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """What was captured: one row per profile, with its tool, ranks, GPUs, rows, span and problems.

        Columns:
            run: Run (one workload in one configuration).
            tool: Profiler: nsys, ncu or kineto; steps for step times that the workload wrote down itself.
            profile_id: Profile; key of `profiles`.
            format: Format and generation of the file.
            tool_version: Version of the tool that wrote it.
            ranks: Ranks of its processes, in natural order; empty where none is known.
            processes: OS processes.
            hosts: Host names.
            gpus: Product names of the GPUs that worked, `unknown` among them where some have none; NULL where all
                have none.
            windows: Capture windows.
            kernels: Kernel rows.
            memory_ops: Memory operations.
            api_calls: CUDA or HIP API calls.
            ranges: CPU-side ranges.
            kernel_ns: Sum of the kernel durations; NULL where none is known.
            gpu_span_ns: First start to last end of GPU work, gaps between windows included; NULL for ncu.
            origin_epoch_ns: Epoch time of start_ns = 0; NULL where the file lacks it.
            events_lost: Records known to be damaged beyond recovery; NULL where not countable.
            truncated: A file ends before its end.
            simulated: The capture was simulated.
            errors: Diagnostics of severity error, by number of rows.
            warnings: Diagnostics of severity warning, by number of rows.
            files: Files it was read from.
            file: Name of the first of them.
        """

    @overload
    def view(
        self,
        name: Literal["profiler_overhead"],
        *,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """How much each tool changes what it measures, as ratios of one tool to a less disturbing one, and which number
        to quote for which question. Four quantities: kernel_duration (ncu against nsys and Kineto, Kineto against
        nsys), launch_gap (Kineto against nsys, between matched neighbours of a stream), step_time (an execution with
        a profiler against one without, by the workload's own clock; only with rankNNNN.steps.json) and held_up
        (overhead that the tool recorded itself: the time of all processes against its part in which the profiler held
        up none of their threads). Grade launch compares the same launches; grade configuration compares medians of
        each kernel key, grid and block over all ranks (with ncu only if these launches take about the same time, so
        it does not matter which of them ncu measured).

        Columns:
            run: Run.
            quantity: kernel_duration, launch_gap, step_time or held_up.
            tool: The tool under test.
            other_tool: What it is compared with: nsys, kineto or none (no profiler).
            clock_control: ncu --clock-control, where known.
            part: all, compute (all but collectives) or a family; of step_time the segment of steps, such as measure.
            grade: launch, configuration, steps, or recorded (held_up).
            samples: Pairs of launches, configurations, gaps, steps under `tool`, or processes.
            launches: Launches of other_tool that they stand for.
            tool_ns: Their time in `tool` (configuration: median times launches); of step_time the mean step; of
                held_up all time; rounded to 1 ns.
            other_ns: The same in other_tool.
            ratio: tool_ns over other_ns: weighted by time.
            median_ratio: Median of the ratios of the samples (step_time: ratio of the medians of the host's times).
            p5_ratio: 5th percentile of the ratios.
            p95_ratio: 95th percentile.
            verdict: Which number may be quoted for which question.
        """

    @overload
    def view(
        self,
        name: Literal["profiler_share"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """How much of a capture is overhead: time in which the profiler held up a thread of the process, and CUDA's time
        for loading and compiling. It excludes time that the profiler adds to calls and kernels themselves:
        profiler_overhead has that, from two executions. The span is that of the API calls, and holds what came before
        the first work on a GPU.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            span_ns: First start to last end of its API calls and of the overhead.
            profiler_ns: Time in which the profiler held up at least one thread: the union over the threads.
            profiler_pct: profiler_ns as a share of span_ns, to one decimal.
            longest_thread_ns: The most that it held up any one thread.
            threads: Threads that it held up; 1 of a PyTorch trace, which does not name them.
            cuda_ns: Time in which CUDA loaded, compiled or waited for room, on at least one thread.
        """

    @overload
    def view(
        self,
        name: Literal["queue_length", "get_queue_length_summary"],
        *,
        full_length: int = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """How many launches waited in each stream: HTA's queue length summary, and the mean over time, per capture
        window. HTA's figures (point_*) weigh each change equally, however long it lasted. queue_length_series has the
        rules of counting.

        Parameters:
            full_length: Launches that fill the queue: from then on a launch call may block.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same launches.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            window_index: Capture window of the process, from 0.
            process_id: OS process.
            device_id: The physical GPU.
            context: CUDA context id within the process.
            stream: Stream id within the process.
            launches: Launch calls that put work into the stream.
            observed_ns: First launch to last start of work.
            mean_length: Mean over that time.
            max_length: Longest queue.
            full_ns: Time at full_length or above.
            points: Changes of the length: two per launch.
            point_mean: Mean of the length over the changes.
            point_stddev: Sample standard deviation over the changes.
            point_min: Shortest queue after a change.
            point_p25: First quartile over the changes.
            point_median: Median over the changes.
            point_p75: Third quartile over the changes.
        """

    @overload
    def view(
        self,
        name: Literal["queue_length_series", "get_queue_length_time_series"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """How many launches wait in each stream over time: a row where the number changes, and it holds until the next
        row. A launch call adds one when it begins; the start of the first work that it launched there subtracts one,
        so a graph launch counts once. It falls below 0 where a tool saw work begin before its call. Work whose call
        was not recorded is left out.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same launches.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; times are comparable only within one.
            window_index: Capture window of the process, from 0.
            process_id: OS process.
            device_id: The physical GPU.
            context: CUDA context id within the process.
            stream: Stream id within the process.
            at_ns: Time of the change, relative to the profile's origin.
            launch_id: The call that was launched, or whose work began; key of `api_calls`.
            change: 1: launched; -1: its work began.
            length: Launches that wait from at_ns on.
        """

    @overload
    def view(
        self,
        name: Literal["range_pace", "nvtx_pace"],
        *,
        projected: bool = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """The pace of repeating ranges: each range, its number among those of its name in the process, and the time
        since the last one began. projected=true uses their projections on the GPU instead, as in
        nvtx_gpu_projection_trace, without ranges that have no GPU work. `only_name=step` shows one name. Each process
        counts for itself: the same number is the same iteration on every rank if all ranks run the same code.

        Parameters:
            projected: Whether starts and durations are those of the projections on the GPU.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; starts are comparable only within one.
            process_id: OS process.
            kind: nvtx_push_pop, nvtx_start_end, annotation, operator, module or step.
            domain: NVTX domain; NULL for the default domain and on Kineto data.
            name: Name of the range.
            nth: Which range of this name in the process it is, from 0, by start.
            start_ns: Start, relative to the profile's origin.
            duration_ns: Duration; NULL where it was never closed.
            period_ns: From the start of the one before to its start; NULL for the first.
            thread: OS thread id of the range.
            range_id: The range; key of `ranges`.
        """

    @overload
    def view(
        self,
        name: Literal["rank_balance"],
        *,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """How evenly the ranks share the work: GPU time of each kernel family, operator and step over the ranks of a
        run. A row is one family, operator or step under one tool; the largest possible gain comes first. Durations
        are compared, never start times, so clocks do not matter. A rank without the item does not count as zero:
        ranks is the number that have it. Communication time includes waits: the rank with the most waited longest,
        and is not the slow one (see straggler); communication_pct is the share of communication in an item.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            item_kind: all, family, op or step.
            item: The family, operator or step number; all for all kernels.
            ranks: Ranks that have it.
            all_ranks: Ranks of the run under this tool.
            min_ns: Smallest sum of kernel durations over these ranks.
            median_ns: Median.
            max_ns: Largest.
            imbalance_ns: max_ns minus median_ns: what the slowest rank costs, at most.
            cv_pct: Coefficient of variation: standard deviation (of these ranks, not a sample) over mean.
            max_rank: The rank of the largest, the lowest of several: the slowest one, or for communication who waited
                longest.
            communication_pct: Share of the item's time, over all ranks, that is communication with its waiting, to
                one decimal.
        """

    @overload
    def view(
        self,
        name: Literal["rank_clock"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """The offset of each rank's clock from the lowest rank's, fitted from the ends of matched collectives. All ranks
        leave a collective together, so the difference of their ends is the difference of their clocks, whenever they
        started. Offset and drift are medians (Theil-Sen), so outliers do not matter. The uncertainty is two robust
        standard deviations of the ends around the line; it does not shrink with more calls, since ranks may leave in
        a fixed order. For up to ten calls it covers the farthest end (for three of them, three times that distance),
        and it is never below the resolution of the times (1 µs in older PyTorch traces). Ranks that share no
        communicator with the lowest rank are linked to it through others, and the uncertainties add up. A rank with
        fewer than three matched calls has no row.

        Columns:
            run: Run.
            tool: nsys or kineto.
            execution_id: Start of the job: from a sidecar, else which recording of the run; NULL where there is one.
            rank: Rank.
            reference_rank: The rank whose clock is the measure.
            offset_ns: This rank's clock minus the reference clock, at at_ns.
            drift_ppb: How much faster it runs, in parts per billion; 0 where not beyond four standard errors.
            uncertainty_ns: How far offset_ns may be off; NULL for the reference, whose clock is the measure.
            at_ns: Time of the reference clock that offset_ns holds for (epoch time, where the file has it).
            collectives: Matched calls behind the fit (its last link).
            method: How these calls were matched; reference for the reference itself.
            same_host: Whether both ranks name one host; NULL where one names none.
            shares_clock: Whether the ranks name no two hosts and the fit agrees with one clock: then no correction is
                made.
        """

    @overload
    def view(
        self,
        name: Literal["rank_skew"],
        *,
        clock: str = ...,
        lag_threshold_ns: int | None = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_step: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Per training step and rank: how late it came to the collectives, how long it waited, and how long the others
        waited for it. A row is one rank in one step of one execution; step is NULL for collectives outside of steps.
        A rank counts as late only if its lag exceeds the uncertainty of the clocks (see collective_match); the row
        with rank NULL holds the collectives whose last rank is unknown. A wait lasts from a rank's own start to the
        last rank's start of the same call. It is charged once: to the rank that came last, or to the ranks that had
        held it up, in the step in which they did. The wait_ns of all ranks exceeds others_wait_ns by the waits of
        unknown cause (the last rank is unknown, slow transfers or several ranks at once delayed it, or the cause is
        undecided).

        Parameters:
            clock: 'fitted' or 'recorded': starts as the fitted clocks correct them, or as the files have them.
            lag_threshold_ns: Lag in ns above which the last rank is named; NULL: the uncertainty of the two clocks.

        Columns:
            run: Run.
            tool: nsys or kineto.
            execution_id: Start of the job: from a sidecar, else which recording of the run; NULL where there is one.
            step: Training step; NULL outside of steps.
            rank: Rank; NULL: the collectives whose last rank is unknown.
            collectives: Matched collectives that the rank took part in (rank NULL: those whose last rank is unknown).
            times_last: Collectives in which all others waited for this rank.
            caused_delay_ns: How much earlier these would have begun without it: its lags, less what was or may be
                inherited.
            inherited_delay_ns: Its lags because its previous collective released it later than the second last (see
                collective_match).
            others_wait_ns: Waits of all others up to its start where it was last, less the share it inherited, and in
                later ones.
            propagated_wait_ns: What ranks waited in later collectives of any group because this one was late in these
                by itself.
            wait_ns: How long this rank waited for others, over all its collectives.
            median_arrival_ns: Median of its starts after the first rank's start.
            max_arrival_ns: The largest of these.
            undecided_delay_ns: Its lags that may be inherited or not: it depends on who came second last (see
                collective_match).
            lag_threshold_ns: Largest lag that would not have been enough to name a rank.
        """

    @overload
    def view(
        self,
        name: Literal["ranks_to_trace"],
        *,
        least_lag_ns: int = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Which ranks of a large job are worth tracing, from the records that NCCL and PyTorch write on all of them. A
        row is a process with such records, those worth tracing first: ranks that never issued a collective in which
        the others wait, stragglers, and for comparison the punctual rank that waited longest. All ranks leave a
        collective together, so the rank with the shortest time came last (_record_matches): no clocks are compared.

        Parameters:
            least_lag_ns: Lag in ns above which the last rank of a collective is named.

        Columns:
            run: Run (one workload in one configuration).
            tool: nccl_inspector or flight_recorder. Never add them up: they saw the same collectives.
            execution_id: Start of the job, from a sidecar; NULL without one.
            rank: Rank of the process; NULL where unknown, or where several processes claim it.
            host: Host name.
            pid: OS process id.
            process_id: OS process; key of `processes`.
            reason: Why to trace it: missing, straggler, or reference (on time, waited longest); NULL: no reason.
            verdict: missing, straggler, held up (waited itself for longer), late (was last once), on time, or cannot
                tell.
            traced: Whether the run has a timeline (nsys or Kineto) of this rank; NULL where the rank is unknown.
            collectives: Its collectives that have a known time on another rank, too.
            unmatched: Its other records: of no known time, or of no other rank.
            times_last: Collectives in which the other ranks waited for it.
            caused_delay_ns: How much earlier these would have ended without it: its lags behind the second last.
            wait_ns: How long it waited for others, over all its collectives.
            unissued: Collectives that others wait in and that it never issued.
            communicator: Communicator in which it caused most delay, or did not issue.
            communicator_name: What the program calls that; NULL where the records do not say.
        """

    @overload
    def view(
        self,
        name: Literal["recommendations"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """The rules of the TensorBoard plugin and the expert rules of nsys, per process: a row per rule that fires, with
        its value and its limit. They do not look for causes (a GPU that copies counts as unused); findings does, and
        summary shows it. Time in the data loader above 5 % of the steps; in communication above 10 %; a GPU used for
        less than 50 % of the time; memory above 90 % of the device; a GPU with tensor cores that no kernel uses,
        while operators that could use them launch kernels; DistributedDataParallel without NCCL, DataParallel on
        several GPUs. More kernels count as communication, and more names as tensor cores, than in the plugin: see
        step_breakdown, gpu_summary. The rules of nsys cover the time from the first to the last GPU work of the
        process. Four fire at 1 % of it: calls for asynchronous copies of pageable memory, for synchronous copies and
        for sets of host memory (summed over threads), and synchronising calls while no work ran on the GPU. Two more
        are gaps of 500 ms or more, and chunks of a 30th in which a GPU works less than half of the time (10 %).

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            window_index: Capture window of the process, from 0; NULL for rules about the whole process.
            rule: data_loader, communication, gpu_utilization, memory, tensor_cores, ddp_without_nccl, data_parallel;
                of nsys cuda_memcpy_async, cuda_memcpy_sync, cuda_memset_sync, cuda_api_sync, gpu_gaps or
                gpu_time_util.
            subject: GPU it is about; NULL for the process.
            value_pct: The number that fired it; NULL where the rule has none.
            limit_pct: The limit of the rule.
            advice: What could be done.
        """

    @overload
    def view(
        self,
        name: Literal["recordings"],
        *,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """The recordings of each run: which profiles belong to one execution under one tool. Runs are compared by their
        recordings; the steps of one recording do not show how executions vary. Profiles whose sidecars name an
        execution belong to it. The others are distinguished by time: a profile that begins more than a second after
        all earlier ones ended, and repeats one of their ranks (an unknown rank counts as one), belongs to another
        execution. Unknown times do not distinguish profiles.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto.
            recording: Number of the recording in its run and tool, from 0, in order of time.
            profile_id: Profile; key of `profiles`.
            execution_id: Execution that its sidecar names; NULL where time distinguishes it.
            first_ns: First GPU work of the profile, in ns since the epoch; NULL where unknown.
            seen_pid: Pid of a process here and in an earlier recording of the run: they may be one process, and no
                replicates.
        """

    @overload
    def view(
        self,
        name: Literal["roofline"],
        *,
        kernel: str | None = ...,
        kernel_regex: str | None = ...,
        assume_gpu: str | None = ...,
        force_gpu: bool = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_family: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """The roofline: work, traffic, performance and roofs of every kernel that ncu measured, per memory level and
        precision.

        Parameters:
            kernel: Part of the kernel's name (any case); NULL for all.
            kernel_regex: Regular expression that the name matches; NULL for all.
            assume_gpu: Product name for the datasheet peaks, where the report lacks it (ncu's CSV does) and its
                compute capability and SMs are the GPU's.
            force_gpu: Whether assume_gpu is taken for every kernel, unchecked.

        Columns:
            configuration_id: Configuration; key of ncu_by_config.
            run: Run.
            rank: Rank; NULL where unknown.
            gpu: Product name of the GPU; NULL where unknown.
            compute_capability: Compute capability.
            name: Kernel name as ncu prints it.
            short_name: Base name of the kernel.
            kernel_key: Canonical name, the same in the three tools.
            family: Family of the kernel.
            grid_x: Grid size, x.
            grid_y: Grid size, y.
            grid_z: Grid size, z.
            block_x: Block size, x.
            block_y: Block size, y.
            block_z: Block size, z.
            clock_control: ncu --clock-control, where known.
            cache_control: ncu --cache-control, where known.
            launches: Launches measured.
            summarised: True where only averages over the launches are known.
            simulated: True where a capture behind it is simulated.
            level: dram, l2 or l1.
            precision: fp64, fp32, fp16, tensor_<path>; 'tensor' where tensor work was not counted; NULL: nothing was.
            is_main: True for one precision of each configuration: the one that does most of the operations.
            plottable: Whether the kernel has a point: work and traffic of one launch and its duration, or both as
                rates, are known and above 0.
            not_plottable_reason: Why not, and what to collect.
            warning: Why the point may mislead.
            duration_ns: Median duration of a launch under ncu; NULL where ncu gave rates only.
            min_duration_ns: Shortest.
            max_duration_ns: Longest.
            work_flop: Operations of one launch (integer operations for integer paths).
            work_definition: How they were counted.
            traffic_bytes: Bytes that the level moved in one launch.
            traffic_source: Metrics behind them.
            level_definition: Definition of the level's bytes; never compare two.
            achieved_flop_per_s: work_flop / duration: what the kernel achieved; ncu's rate where the duration is
                unknown.
            achieved_bytes_per_s: traffic_bytes / duration, as above.
            min_achieved_flop_per_s: No launch achieved less: of the least rates, else over the longest duration.
            max_achieved_flop_per_s: No launch achieved more: of the greatest rates, else over the shortest duration.
            min_achieved_bytes_per_s: No launch moved less, as above.
            max_achieved_bytes_per_s: No launch moved more, as above.
            arithmetic_intensity: work_flop / traffic_bytes, operations per byte; of the rates where the duration is
                unknown.
            ncu_chart_flop_per_s: Height in the roofline chart of Nsight Compute: operations per cycle times
                ncu_chart_clock_hz.
            ncu_chart_bytes_per_s: Bytes per second in that chart, as printed.
            ncu_chart_arithmetic_intensity: ncu_chart_flop_per_s / ncu_chart_bytes_per_s.
            ncu_chart_clock_hz: Clock of that chart.
            peak_flop_per_s: Compute roof: ncu's peak per cycle times roof_clock_hz.
            peak_bytes_per_s: Memory roof: the peak bandwidth of the level, at roof_memory_clock_hz.
            ridge_point: peak_flop_per_s / peak_bytes_per_s: the intensity at which the two roofs meet.
            roof_pct: Achieved performance in % of the roof at this intensity; can exceed 100 (boost clocks). Of a
                kernel of 0 operations: bandwidth in % of the memory roof.
            roof_clock_hz: SM clock that peak_flop_per_s holds for: the one during ncu's measurement.
            roof_memory_clock_hz: Clock of the level that peak_bytes_per_s holds for, as above.
            datasheet_peak_flop_per_s: Dense compute peak of the datasheet; scaled by SMs for a slice of a GPU.
            datasheet_peak_bytes_per_s: Peak bandwidth of the datasheet; NULL for L1, and for a slice of a GPU.
            datasheet_ridge_point: The same of the two peaks of the datasheet.
            datasheet_roof_pct: The same of the datasheet's roof, scaled (but for DRAM) to roof_clock_hz; NULL where
                that is unknown.
            datasheet_clock_hz: Clock that the datasheet's compute peak holds for.
            datasheet_gpu: Row of gpu_peaks.
            datasheet_source: Where the datasheet's numbers come from, and how they were scaled; or why assume_gpu is
                not used.
        """

    @overload
    def view(
        self,
        name: Literal["run_difference"],
        *,
        base: str | None = ...,
        other: str | None = ...,
        by: str = ...,
        fdr: float = ...,
        threshold_pct: float = ...,
        skip_steps: int = ...,
        time: str | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """What changed between two runs of one workload: per kernel (or family, operator, module, phase, step), with its
        uncertainty. The verdict rests on recordings. An item's time in a recording is the mean over its steps of the
        mean over the ranks that have the step (a step without a launch counts as 0). The step itself (by=step) lasts
        as in step_breakdown, GPU work included. Runs without steps are cut into ten blocks of consecutive launches
        each, and the mean durations of launches are compared (see unit). Differences are between means over
        recordings; the interval is that of Welch's test (of Student's, if there are not as many of each). An item is
        slower or faster if the interval excludes 0, the change exceeds the threshold, and the false-discovery rate
        over all items allows it; the step time is one planned test of its own. No change means that the whole
        interval lies within the threshold. Everything else is undecided, as is every item with one recording of each
        run: the steps of a recording are not replicates of its run. `needed` is the number of recordings that would
        suffice. Times outside any operator, module or phase are the item NULL. Both runs are compared under the same
        tool: nsys where both have it, else Kineto.

        Parameters:
            base: Baseline run; NULL: the first of the store's two runs.
            other: Run that is compared with it; NULL: the second.
            by: kernel (key and launch configuration), key, family, op, module, phase or step (the step time).
            fdr: False-discovery rate: the largest share of false positives among the changes named (by=step: none, 5
                %).
            threshold_pct: Smallest change of an item's own time to report, in percent.
            skip_steps: Steps at the start of each recording that are left out (warm-up).
            time: Tool whose times are compared: nsys or kineto; NULL: nsys where both runs have it, else Kineto.

        Columns:
            item: The kernel, family, operator, module or phase, or step.
            kernel_key: Kernel key, for kernels.
            tool: Tool whose times are compared.
            unit: per step, or per launch where a run has no steps.
            verdict: slower, faster, new, vanished, no change or undecided: of the runs.
            base_ns: Mean over the recordings of base.
            other_ns: Mean over those of other.
            difference_ns: other_ns minus base_ns.
            low_ns: Lower end of the 95 % interval of the runs' difference; NULL with one recording of each.
            high_ns: Upper end.
            change_pct: difference_ns as a share of base_ns.
            q_value: Smallest false-discovery rate at which the change is significant (by=step: the p-value).
            smallest_ns: Smallest difference that these recordings could have shown: half the interval; NULL: none at
                all.
            needed: Recordings of each run that find such a change in four of five cases; NULL where decided, with
                fewer than three of each, or over 1,000.
            absent: new, vanished: in no recording of the one run.
            base_total_ns: Sum of the durations in base, all steps or blocks and ranks.
            other_total_ns: Sum of those in other.
            base_launches: Launches in base (for step: steps), all steps or blocks and ranks.
            other_launches: Launches in other.
            base_median_ns: Median duration of a launch in base.
            other_median_ns: Median duration of a launch in other.
            base_replicates: Steps or blocks of base.
            other_replicates: Steps or blocks of other.
            base_recordings: Recordings of base.
            other_recordings: Recordings of other.
        """

    @overload
    def view(
        self,
        name: Literal["run_match"],
        *,
        base: str | None = ...,
        other: str | None = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Which launch of one run is which launch of another run of the same workload: the pairs that are certain, one
        to one. Use it for captures of different tools in different runs (nsys in one, ncu in another), or of one tool
        before and after a change. As in matches: the same kernel key, grid and block, registers and shared memory
        where both have them, and a certain place in the order of launches. Captures ingested as one run (`ingest
        --run NAME`) have all of this in matches and the views built on it. Uncertain pairs are left out:
        run_difference compares kinds of launches instead.

        Parameters:
            base: Run of the first side; NULL: the first of the store's two runs.
            other: Run of the second; NULL: the second.

        Columns:
            rank: Rank; NULL where unknown.
            run: Run of kernel_id.
            tool: Its tool: nsys before kineto before ncu.
            kernel_id: The launch; key of `kernels`.
            other_run: Run of other_kernel_id.
            other_tool: Its tool.
            other_kernel_id: The same launch there.
            evidence: What makes it certain, as in matches.
        """

    @overload
    def view(
        self,
        name: Literal["run_waterfall"],
        *,
        base: str | None = ...,
        other: str | None = ...,
        by: str = ...,
        per: str = ...,
        time: str | None = ...,
        skip_steps: int = ...,
        fdr: float = ...,
        threshold_pct: float = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Where the change of the step time between two runs comes from: exclusive time per item, which sums to the step
        exactly. Each moment of a step belongs to one item, the first of: a compute kernel (CUDA graphs of unknown
        kernels come after known ones); a memory operation; a communication kernel; and if the GPU idles, the host's
        activity: a communication call, a runtime call, the data loader, an operator, nothing recorded. Collectives
        hidden by kernels therefore do not appear. Of two concurrent items of one kind, the earlier one has the time
        until it ends. A step is that of step_breakdown: from the end of the previous step (the first: from its
        range's start) to the end of its range and of the GPU work launched in it. The host range alone would include
        GPU work of the previous step. Times are means over a rank's steps in a recording, then over its ranks, then
        over the recordings: exact fractions, rounded so that the items still sum to the rounded step (largest
        remainder). Ranks are those that both runs have; if world sizes differ, or no rank is known, all processes of
        each run. A process that drives several GPUs counts as one. Runs without steps are compared by share only,
        without a verdict: base_ns and other_ns are then time in the captured slices (from the first operator on, and
        after the GPU work launched before it), not step times. Both runs are compared under one tool: nsys where both
        have it, else Kineto; without a common tool, they are refused. low_ns, high_ns and verdict are those of
        run_difference: they rest on recordings.

        Parameters:
            base: Baseline run; NULL: the first of the store's two runs.
            other: Run that is compared with it; NULL: the second.
            by: family, kernel (key and launch configuration), key, op, module or phase: what the items of GPU work
                are.
            per: 'run': one waterfall, of the mean over the ranks. 'rank': one for each rank that both runs have.
            time: Tool whose times are compared: nsys or kineto; NULL: nsys where both runs have it, else Kineto.
            skip_steps: Steps at the start of each process of a recording that are left out (warm-up).
            fdr: False-discovery rate: the largest share of false positives among the changes named.
            threshold_pct: Smallest change of an item's own time to report, in percent.

        Columns:
            base_run: Run that is the measure.
            other_run: Run that is compared with it.
            rank: Rank; NULL: the mean over the ranks.
            kind: compute, memory, collective, or idle (of the GPU).
            item: The family, kernel, operator, …, memory operation, or what the host did; NULL where it is not known.
            tool: Tool whose times are compared.
            unit: per step, or of the capture where a run has no steps.
            verdict: slower, faster, new, vanished, no change or undecided: of the runs.
            absent: new, vanished: in no recording of the one run.
            base_ns: Exclusive time in a mean step of base.
            other_ns: The same in other.
            difference_ns: other_ns minus base_ns; NULL without steps.
            low_ns: Lower end of its 95 % interval, over the recordings; NULL with one recording of each run.
            high_ns: Upper end.
            base_pct: base_ns as a share of the step or capture.
            other_pct: The same in other.
            difference_pct: other_pct minus base_pct, in points.
            base_total_ns: The mean step of base, or its mean capture.
            other_total_ns: The same of other.
            change_ns: Change of the step time; NULL without steps.
            base_steps: Steps of base that count, over all ranks.
            other_steps: Steps of other.
            base_recordings: Recordings of base.
            other_recordings: Recordings of other.
            base_ranks: Ranks (processes, where unknown) of base that count.
            other_ranks: Those of other.
            excluded_ranks: Ranks that only one of the runs has, and that do not count; NULL: none.
        """

    @overload
    def view(
        self,
        name: Literal["serving_steps"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_step: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Every step of an inference server: what it computed (prefill, decode or both), for how many requests and
        tokens, and how long it took on the host and on the GPU. Steps are ranges with the names that vLLM, SGLang and
        TensorRT-LLM give them. GPU work belongs to the step that was open in its process when it was launched, on any
        thread; a step inside another one is a part of that.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            window_index: Capture window.
            range_id: The step; key of `ranges`.
            engine: vLLM, SGLang or TensorRT-LLM, by the form of the name.
            step: Number that the name has (TensorRT-LLM), else its place in the window, from 0.
            phase: prefill, decode, mixed, or what else the server calls it (SGLang, in small letters); idle: no
                request.
            requests: Requests in the step; NULL where the name does not say.
            prefill_requests: Requests whose prompt it computed.
            decode_requests: Requests for which it generated.
            prefill_tokens: Tokens of prompts that it computed.
            decode_tokens: Tokens that it computed for requests that generate.
            start_ns: Start of the step on the host, relative to profiles.origin_epoch_ns.
            host_ns: Its duration on the host: a server that works ahead does not wait for the GPU in it.
            launches: Kernels and memory operations that it launched.
            gpu_span_ns: From the start of the first of them to the end of the last; NULL where there are none.
            gpu_work_ns: Sum of their durations.
        """

    @overload
    def view(
        self,
        name: Literal["serving_summary"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Steps of an inference server by phase, per process: how many, for how many requests and tokens, and how long
        they took on the host and on the GPU: median and 99th percentile of the steps, each a step that occurred.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            engine: vLLM, SGLang or TensorRT-LLM.
            phase: prefill, decode, mixed, idle, or what else the server calls it.
            steps: Steps.
            requests: Requests, each step's counted; NULL where a name does not say.
            prefill_tokens: Tokens of prompts; NULL where a name does not say.
            decode_tokens: Tokens of requests that generate; NULL where a name does not say.
            host_p50_ns: Median duration on the host.
            host_p99_ns: 99th percentile of it.
            gpu_p50_ns: Median of gpu_span_ns, over the steps that launched something.
            gpu_p99_ns: 99th percentile of it.
            gpu_work_ns: GPU work of all these steps; a sum of durations.
        """

    @overload
    def view(
        self,
        name: Literal["shape_agreement"],
        *,
        only_run: _Names | None = ...,
        only_family: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Work from shapes against ncu's counters: operations and bytes of each kernel and configuration that has both.
        A row per configuration that ncu measured and whose operator has a formula in Kineto (or nsys). If matches
        identify ncu's launches among them, only these count, else all launches of the same kernel, grid and block in
        the run, which must agree. For products, convolutions and attention, operations are those of the precision
        with the most, else all. Ratios are the counted figure over the one from shapes. The verdicts claim no more
        than names and numbers show.

        Columns:
            run: Run (one workload in one configuration).
            configuration_id: Configuration of ncu; key of ncu_by_config.
            name: Kernel name as ncu prints it.
            kernel_key: Canonical name, the same in the three tools.
            configuration: Kernel key, grid and block.
            family: Family of the kernel.
            op: Operator whose shapes they are; NULL where launches differ in it.
            op_shapes: Its shapes; NULL where they differ.
            launches: Launches whose shapes were taken.
            grade: launch, or configuration where which launch ncu measured is not known.
            shape_flop: Operations of a launch by its shapes; NULL where unknown, or where launches differ.
            counted_flop: Operations by the counters; NULL where not counted.
            flop_ratio: counted_flop / shape_flop.
            flop_verdict: What the ratio says.
            shape_bytes: Least bytes of a launch by its shapes.
            dram_bytes: Bytes of DRAM by the counters.
            bytes_ratio: dram_bytes / shape_bytes.
            bytes_verdict: What that ratio says.
        """

    @overload
    def view(
        self,
        name: Literal["shape_work"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Operations and minimum bytes of each kernel launch, from the shapes of its operator: for kernels without
        counters. Kineto with record_shapes, and nsys with PyTorch's emit_nvtx(record_shapes=True). Every launch of a
        profile that recorded shapes has a row; where the work is not certain it is NULL, and `reason` says why. Of
        nested products, convolutions and attention the innermost operator counts, so linear, which calls addmm, never
        counts twice. Its work goes to its one kernel of that kind; transposes, split-K sums and other helpers get
        none. A backward convolution has two products of equal work: two kernels get one each. Every other operator
        counts if it launched exactly one kernel itself. A multiply-add is 2 operations, as in
        torch.utils.flop_counter (backward grouped convolutions: without its factor of groups; causal attention: only
        the pairs on and below the diagonal, about half of its count). Convolutions count as the direct algorithm:
        Winograd and FFT kernels do fewer. minimal_bytes: every operand once, the result once. Both describe the
        operator, not what the kernel did: tile padding, split-K and repeated reads add to it, caches reduce the
        traffic.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same launches.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            kernel_id: The launch; key of `kernels`.
            op: Operator whose work it is; NULL where no operator with a formula is around the launch.
            op_range_id: That call; key of `ranges`.
            op_shapes: Its input shapes as the tool prints them.
            formula: Formula that was used.
            work_flop: Floating-point operations of the launch (integer ones of integer products); NULL where not
                certain.
            minimal_bytes: Least bytes that the launch moves; NULL where not certain.
            precision: Type of the operands: fp64, fp32, bf16, fp16, fp8, int8, ...; NULL where not recorded.
            peak_key: Peak of the GPU that bounds it, in the words of roofline: tensor_bf16, fp32, ...; NULL where not
                known.
            work_definition: How the operations were counted.
            call_flop: Operations of the whole call; the same for all of its launches, to be counted once per
                op_range_id.
            call_bytes: Least bytes of the whole call, as above.
            call_launches: Launches of the call.
            reason: Why work_flop or minimal_bytes is NULL; NULL where both are known.
        """

    @overload
    def view(
        self,
        name: Literal["speed_of_light"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """ncu's GPU Speed Of Light, per kernel and launch configuration: how much of what the SMs and the memory system
        can do at most it used, and what holds it back, by the limits of ncu's own rule (SOLBottleneck). Those that
        took the most time under ncu come first: replay and locked clocks change times, so they rank kernels and are
        no shares of a job.

        Columns:
            run: Run.
            rank: Rank; NULL where unknown.
            name: Kernel name as ncu prints it.
            limited_by: small grid: fewer blocks than half of the SMs, or less than a wave, and no unit at 60 %; small
                blocks: of fewer threads than a warp; latency: below 60 % of both; memory or compute: 10 points more
                of that (of DRAM, where the memory system is not known; L1/TEX at 60 % while active is memory, SMs at
                80 % are compute where memory is not known); memory and compute: as much of both; NULL: not known.
            unit: Busiest unit of those collected: DRAM, L2, L1/TEX, LSU (loads and stores), instruction issue, a pipe
                (FMA, FP64, ALU, tensor, ...); SM or memory where ncu does not say which of its parts.
            unit_pct: What it used, in % of its peak.
            sm_pct: Throughput of the SMs, in % of the peak (ncu: Compute (SM) Throughput); NULL where not collected.
            memory_pct: Throughput of the memory system, caches included, in % of the peak (ncu: Memory Throughput).
            dram_pct: DRAM throughput, in % of the peak.
            l2_pct: L2 throughput, in % of the peak.
            l1_pct: L1/TEX throughput, in % of the peak, of the time in which it was active.
            tensor_pct: Busiest tensor pipe, in % of its peak; NULL where not collected.
            dram_bytes_per_s: What DRAM moved.
            occupancy_pct: Achieved occupancy: warps, in % of what the SMs hold, of the time in which they were
                active.
            max_occupancy_pct: Theoretical occupancy: what the launch allows.
            occupancy_limit: What keeps that below 100 %: registers, shared memory, blocks or barriers; NULL where
                nothing does.
            stall: For what warps waited most, as ncu names it (barrier, long_scoreboard, ...), by samples or cycles.
            stall_pct: Its share of all cycles of warps.
            waves: Waves of blocks per SM: below 1 the grid does not fill the GPU. From ncu, else from the limits of
                occupancy, else from the text of ncu's rule; NULL where none of these is known.
            launches: Launches measured, over all reports.
            duration_ns: Median duration under ncu, rounded to 1 ns.
            total_ns: Sum of the durations; duration_ns times launches where not every launch has one.
            grid: Grid size.
            block: Block size.
            configuration_id: Configuration; key of ncu_by_config.
        """

    @overload
    def view(
        self,
        name: Literal["stack_summary"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """GPU and host time by Python frame, per process: which functions launched the GPU work. A row is a function, a
        module or a built-in, wherever it was called from. Self counts what the frame launched or took itself; total
        includes the frames within it. A function that calls itself counts once. Two more rows per process hold the
        GPU work that belongs to no frame. GPU time is a sum of durations of kernels and memory operations: concurrent
        ones count separately.

        Columns:
            run: Run (one workload in one configuration).
            tool: kineto.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            name: Frame as the profiler prints it; (no stack): launched where no frame was open; (no call): its
                launching call is not known.
            file: File of the function; NULL for built-ins and modules.
            line: First line of the function, not the line that runs (but of torch 1.8 to 1.10).
            function: Name of the function; NULL for built-ins and modules.
            calls: Calls.
            launches: Kernels and memory operations that it launched itself.
            gpu_self_ns: GPU time that it launched itself.
            gpu_total_ns: That, and that of the frames within it.
            backward_ns: The part of gpu_total_ns that is backward.
            host_self_ns: Host time, without the frames that it called. Short frames that launch nothing are not
                stored, and count here.
            host_total_ns: Sum of the calls' durations.
            process_gpu_ns: All GPU time of the process.
        """

    @overload
    def view(
        self,
        name: Literal["stack_tree"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Python frames from the outermost to the innermost, per process and thread, with the time that each took on the
        host and the GPU time that it launched: what `nsightlens export flamegraph` draws. All calls of a function
        from the same stack are one row. GPU time is a sum of durations of kernels and memory operations: concurrent
        ones count separately. Two more rows per process hold the GPU work that belongs to no frame, so self times sum
        to all GPU work.

        Columns:
            run: Run (one workload in one configuration).
            tool: kineto.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            thread: OS thread id; NULL for work of no frame.
            frame_id: The frame; key of `frames`; NULL for work of no frame.
            parent_id: The frame that called it; NULL for the outermost.
            depth: Frames around it.
            name: Frame as the profiler prints it; (no stack): launched where no frame was open; (no call): its
                launching call is not known.
            calls: Calls.
            host_total_ns: Sum of the calls' durations.
            host_self_ns: That, less the frames of this table that it called.
            launches: Kernels and memory operations that it launched itself.
            total_launches: Those, and those of the frames within it.
            gpu_self_ns: GPU time that it launched itself.
            gpu_total_ns: That, and that of the frames within it.
            backward_ns: The part of gpu_total_ns that is backward.
            outermost_ns: gpu_total_ns of the outermost frames and of work of no frame, 0 for others: what sums to all
                GPU work.
            process_gpu_ns: All GPU time of the process.
        """

    @overload
    def view(
        self,
        name: Literal["stage_waits"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """How long each rank waits in sends and receives for the rank at the other end: in a pipeline, for the other
        stage. A row is a rank and one of those that it exchanges with. Both ends of a message leave it together: what
        the longer of the two kernels lasts beyond the other is waiting. So only durations are compared, and clocks do
        not matter.

        Columns:
            run: Run.
            tool: kineto.
            execution_id: Start of the job: from a sidecar, else which recording of the run; NULL where there is one.
            rank: Rank that waits.
            peer_rank: Rank that it waits for.
            stage: Its stage in the pipeline; NULL where the communicator is none.
            peer_stage: Stage of the other.
            messages: Sends and receives with a known other end.
            total_ns: Sum of their durations.
            wait_ns: Part of it that is waiting for the other rank.
            transfer_ns: The rest.
        """

    @overload
    def view(
        self,
        name: Literal["step_breakdown"],
        *,
        communication_pattern: str | None = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_step: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Where each training step went: exclusive categories in the priority order of the TensorBoard plugin (Kernel,
        Memcpy, Memset, Communication, Runtime, DataLoader, CPU Exec, Other), exact to the ns; they sum to the step.
        Time shared by several categories counts only for the first of them. A step lasts from its range's start, or
        the end of the step before it, to the end of its range and of the GPU work launched in it. A process without
        steps has one row: its whole capture (operators, API calls and GPU work). It differs from the plugin in four
        points. That row spans only the operators there. Here all recognised communication kernels count as
        communication; the plugin links them through External id to five nccl and gloo operators and counts all others
        as Kernel (all_kernels_ns is that figure, communication_pattern := '^$' gives its whole breakdown). Data-
        loader ranges count here whether operator or annotation; the plugin sees only operators. No step is dropped
        here; the plugin drops a last step whose GPU work is missing. If the capture holds no GPU work of the process
        at all, or no API call, those figures are NULL.

        Parameters:
            communication_pattern: Regex of the kernel names that communicate; NULL: family `collective`.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process.
            window_index: Capture window of the process, from 0.
            step: Step number; NULL for a process without steps.
            step_id: Range of the step; key of `ranges`.
            start_ns: Start of the step, relative to the profile's origin.
            step_ns: Length of the step, with the GPU work launched in it, less what the step before overlaps.
            kernel_ns: Kernels that do not communicate, and graphs whose kernels are unknown.
            memcpy_ns: Copies, migrations and decompressions, outside kernels.
            memset_ns: Memsets, outside all before.
            communication_ns: Kernels that communicate and the host side of communication operators, outside all
                before.
            runtime_ns: CUDA or HIP API calls, outside all before.
            data_loader_ns: Waiting for the data loader, outside all before.
            cpu_exec_ns: Operators on the host, outside all before.
            other_ns: The rest of the step.
            all_kernels_ns: Union of all kernels, those that communicate included.
            gpu_activities: Pieces of GPU work launched inside the step's range; few where the capture ended.
        """

    @overload
    def view(
        self,
        name: Literal["step_time_summary"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """How long a step takes, as the workload measured it itself (rank0003.steps.json), without a profiler and under
        each. A row is a segment of steps (warmup, measure) of one process. Under a profiler it shows the profiling
        overhead.

        Columns:
            run: Run (one workload in one configuration).
            profiler: Profiler that the execution ran under: none, nsys, ncu or kineto.
            rank: Rank of the process; NULL where unknown.
            process_id: OS process; key of `processes`.
            workload: What the workload calls itself.
            segment_number: Position of the segment in its file, from 0.
            segment_name: The workload's name for the segment.
            steps: Steps in it.
            step_ns: Length of the segment over its steps, to one decimal: the true time of a step. Under
                torch.profiler it holds what the profiler does between steps (writing its trace), too.
            median_ns: Median time in which the host issued a step: the mean of the middle two for an even number.
            p5_ns: 5th percentile of that, interpolated linearly between the two nearest steps, to one decimal.
            p95_ns: 95th percentile, interpolated the same way.
            min_ns: Shortest.
            max_ns: Longest.
        """

    @overload
    def view(
        self,
        name: Literal["step_timeline", "trace_view"],
        *,
        which_step: int | None = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_step: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        only_family: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """One step of each process, for drawing: GPU work by stream, CPU calls and ranges by thread. A row is a piece of
        work or a range that was there during the step; times are relative to the step's start, and may begin before
        it or end after it. A process without steps has its whole capture. Marks and ranges without an end have no
        row.

        Parameters:
            which_step: Step number; NULL: the middle one of each process, as likely to be ordinary as any.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown.
            profile_id: Profile; times are comparable only within one.
            process_id: OS process.
            window_index: Capture window of the process, from 0.
            step: Step number; NULL for a process without steps.
            step_ns: Length of the step.
            device_id: The physical GPU, for GPU work.
            stream: Stream, for GPU work; NULL for work outside streams.
            thread: OS thread, for calls and ranges.
            kind: kernel, memory, graph, api_call, or the kind of the range (operator, annotation, module, ...).
            family: Kernel family.
            depth: Number of ranges around a range on its thread.
            name: Name as recorded.
            event_id: The row behind it: key of kernels, memory_ops, graph_executions, api_calls or ranges.
            start_ns: Start, relative to the step's start.
            duration_ns: End minus start.
        """

    @overload
    def view(
        self,
        name: Literal["straggler", "get_potential_stragglers"],
        *,
        clock: str = ...,
        lag_threshold_ns: int | None = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Which rank the others wait for: per rank of an execution, in how many collectives, for how long, and a
        verdict. The same figures as rank_skew, over the whole execution: each wait is charged once, to the rank that
        caused it, or to none. The rank with the largest caused_delay_ns is a straggler, as is every other rank with
        at least twice its even share of all delay, always beyond the uncertainty of the clocks. The row with rank
        NULL counts the collectives whose last rank is unknown, with the uncertainty that hides it.

        Parameters:
            clock: 'fitted' or 'recorded': starts as the fitted clocks correct them, or as the files have them.
            lag_threshold_ns: Lag in ns above which the last rank is named; NULL: the uncertainty of the two clocks.

        Columns:
            run: Run.
            tool: nsys or kineto.
            execution_id: Start of the job: from a sidecar, else which recording of the run; NULL where there is one.
            rank: Rank; NULL: the collectives whose last rank is unknown.
            collectives: Matched collectives that the rank took part in (rank NULL: those whose last rank is unknown).
            times_last: Collectives in which all others waited for this rank.
            caused_delay_ns: How much earlier these would have begun without it: its lags, less what was or may be
                inherited.
            inherited_delay_ns: Its lags because its previous collective released it later than the second last (see
                collective_match).
            others_wait_ns: Waits of all others up to its start where it was last, less the share it inherited, and in
                later ones.
            propagated_wait_ns: What ranks waited in later collectives of any group because this one was late in these
                by itself.
            wait_ns: How long this rank waited for others, over all its collectives.
            median_arrival_ns: Median of its starts after the first rank's start.
            max_arrival_ns: The largest of these.
            undecided_delay_ns: Its lags that may be inherited or not: it depends on who came second last (see
                collective_match).
            lag_threshold_ns: Largest lag that would not have been enough to name a rank.
            verdict: straggler; late (was last once); held up (mostly inherited it); late or held up; on time; cannot
                tell.
        """

    @overload
    def view(
        self,
        name: Literal["synchronization_summary"],
        *,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Waits for the GPU by what each was for and by the waiting call, per run. The time of a wait is part of the
        time of its call. In a stream_wait_event the stream waits, not the host, and how long it waits is not
        recorded.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys, or kineto, if it recorded them (enable_cuda_sync_events).
            time_pct: Share of the summed time of all waits of this run, to one decimal.
            total_ns: Sum of duration_ns.
            waits: Number of waits.
            avg_ns: Mean duration, to one decimal.
            median_ns: Median duration: the mean of the middle two for an even number.
            min_ns: Shortest duration.
            max_ns: Longest duration.
            stddev_ns: Sample standard deviation (n - 1), to one decimal; 0 for a single one.
            streams: Distinct streams among them, per process and context; 0 where none is named.
            kind: event, stream, context or stream_wait_event; see `synchronizations`.
            name: The API function that waited; NULL where the call was not recorded.
        """

    @overload
    def view(
        self,
        name: Literal["synchronization_trace"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Each wait for the GPU, in order: which call waited, for which stream or event, and where and when that event
        was recorded.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys, or kineto, if it recorded them (enable_cuda_sync_events).
            rank: Rank of the process; NULL where unknown.
            start_ns: Start on the host, relative to the profile's origin.
            duration_ns: Duration; of a stream_wait_event that of the call, not of the wait.
            kind: event, stream, context or stream_wait_event; see `synchronizations`.
            name: The API function that waited; NULL where the call was not recorded.
            awaited_stream: The stream that was awaited, or in which the event was recorded; NULL for a context, or
                not known.
            waiting_stream: The stream that waits, of a stream_wait_event.
            event_id: CUDA event that the wait is for.
            reached_ns: When the GPU reached that record of the event; NULL in reports before 2025, and under Kineto.
            thread: OS thread id of the caller.
            context: CUDA context id within the process.
            device_id: The GPU.
            profile_id: Profile; starts are comparable only within one.
            process_id: OS process.
            launch_id: The call; key of `api_calls`.
            synchronization_id: The wait; key of `synchronizations`.
        """

    @overload
    def view(
        self,
        name: Literal["temporal_breakdown", "get_temporal_breakdown"],
        *,
        per: str = ...,
        communication_pattern: str | None = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Idle, compute and non-compute time of each GPU (or process), per capture window: HTA's temporal breakdown,
        exact to the ns. Compute is the union of the kernels that do not communicate; non-compute is what
        communication and memory operations add to it where no kernel computes. ncu has no timeline, so no rows.

        Parameters:
            per: 'device' or 'process': what the intervals are united over.
            communication_pattern: Regex of the kernel names that communicate; NULL: family `collective`. HTA takes
                '^nccl.*Kernel'.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process; NULL where unknown or where processes share the device.
            profile_id: Profile; key of `profiles`.
            window_index: Capture window of the process, from 0.
            process_id: OS process; NULL where several share the device.
            device_id: The physical GPU; NULL where the process used several.
            span_ns: First start to last end of kernels, memory operations and graph executions.
            idle_ns: Nothing was running.
            compute_ns: A kernel that computes was running.
            non_compute_ns: Communication or memory operations were running, and no kernel that computes.
            unknown_ns: Only CUDA graphs were running whose kernels the tool did not record.
            idle_pct: idle_ns as a share of span_ns, to two decimals.
            compute_pct: compute_ns as a share of span_ns, to two decimals.
            non_compute_pct: non_compute_ns as a share of span_ns, to two decimals.
        """

    @overload
    def view(
        self,
        name: Literal["time_tree"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Where the time of each GPU went: one window, five branches that sum to it to the ns, and their leaves, a row
        for each. The window is the steady steps, from the GPU end of the step before the first of them to the GPU end
        of the last; without two of them, first to last GPU work. Each ns of it goes to the first that applies:
        computing (kernels that do not communicate, and CUDA graphs recorded whole), communication, copies, not
        recorded (launched, and not started for another reason than the queue: in gaps over 50 µs, from 20 µs after
        the return of the launch call; or next to launches without a kernel), idle. Idle is divided by what the thread
        did that launched the work after each gap; start-up (first call of the process to its first GPU work) and
        wind-down (last GPU work to the end of the last call) likewise: they are no part of the window. Where
        processes share a GPU, each has work, start-up and wind-down of its own.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys or kineto. Never add them up: they saw the same work.
            rank: Rank of the process whose window it is; NULL where unknown.
            profile_id: Profile; key of `profiles`.
            process_id: OS process whose start-up or wind-down it is; else the one whose work began first on the GPU.
            window_index: Capture window of the process, from 0.
            device_id: The physical GPU.
            row_index: Place of the row in its tree, from 0: the window.
            parent_index: row_index of the row that it is a part of; NULL for the window, start-up and wind-down.
            depth: 0 for the window, start-up and wind-down; 1 for branches; then leaves.
            node: window, a branch, a cause, or the name of a process, kernel, call, range or direction.
            count: Kernels, copies or gaps that have some of it; of the window its steady steps; NULL where not
                counted.
            start_ns: Start of the window, relative to the profile's origin; NULL but for the window.
            total_ns: How long.
            share_pct: total_ns as a share of the window, to one decimal; NULL for what is no part of it.
        """

    @overload
    def view(
        self,
        name: Literal["timeline_kernels"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_step: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        only_family: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """The kernels of the best undisturbed tool of each run: nsys where it recorded kernels, else Kineto; never ncu.
        Start here for questions about time: each launch has one row. Columns are those of `kernels`.

        Columns:
            kernel_id: Identity of the row, stable across re-ingests.
            run: Run the row belongs to (one workload in one configuration).
            tool: What recorded it: nsys, ncu, kineto, steps (the workload's own clock), nccl_inspector (NCCL's or
                RCCL's Inspector) or flight_recorder (PyTorch's).
            profile_id: Profile it came from; key of `profiles`.
            process_id: OS process within the profile; key of `processes`.
            window_index: Contiguous capture window of the process, from 0.
            rank: Rank of the process; NULL where unknown (see `processes.rank_source`).
            host: Host name of the process.
            pid: OS process id.
            device_id: The physical GPU (or MIG slice), the same across processes; key of `devices`.
            device: The tool's device ordinal within the process (after CUDA_VISIBLE_DEVICES).
            gpu: Product name of the GPU.
            context: CUDA context id within the process.
            stream: Stream id within the process; NULL for work outside streams.
            start_ns: Start, relative to profiles.origin_epoch_ns; NULL for ncu.
            duration_ns: End minus start; NULL where the tool printed an impossible value.
            overrun_ns: What it lasts beyond the start of the next kernel in its stream, where it still ran when the
                second after it began: its end cannot be true. 0: it ends in time. NULL: not known (no time, no
                stream, too few kernels after it, or one of several of a graph).
            launch_index: Order of launch in the process, from 0 (launch time, correlation id, ncu ID).
            nth: The n-th launch of this kernel_key and launch configuration in the process, from 0.
            name: Kernel name as the tool prints it (nsys: demangled).
            short_name: Base name without template arguments, namespaces and parameters.
            mangled_name: Mangled symbol, where the tool recorded it.
            kernel_key: Canonical name, the same in the three tools.
            family: gemm, convolution, attention, normalization, reduction, elementwise, optimizer, collective, memory
                or other.
            tensor_cores: Runs on tensor cores, by its name; NULL where it does not show (Triton, ...).
            grid_x: Grid size, x.
            grid_y: Grid size, y.
            grid_z: Grid size, z.
            block_x: Block size, x.
            block_y: Block size, y.
            block_z: Block size, z.
            cluster_x: Thread block cluster size, x.
            cluster_y: Thread block cluster size, y.
            cluster_z: Thread block cluster size, z.
            registers_per_thread: Registers per thread.
            static_shared_bytes: Static shared memory per block.
            dynamic_shared_bytes: Dynamic shared memory per block.
            shared_bytes: Static and dynamic shared memory per block.
            blocks_per_sm: Blocks of the grid divided by the SMs of the GPU (Kineto).
            warps_per_sm: Warps of the grid divided by the SMs of the GPU (Kineto).
            estimated_occupancy_pct: Occupancy estimated by the tool from the launch (Kineto).
            correlation_id: CUPTI correlation id: unique per process, shared by the nodes of a graph launch.
            launch_id: The API call that launched it; key of `api_calls`.
            queue_delay_ns: start_ns minus end of the launching call; negative when it began before.
            external_id: Kineto's External id where it is a real link to an operator, else NULL.
            graph_id: Executable CUDA graph the kernel is a node of.
            graph_node_id: Node within that graph.
            annotation: What the program called the node when it captured the graph (PyTorch's mark_kernels).
            annotated_module: Module that the program named for the node when it captured the graph: a path.
            step: Training step number the launch belongs to.
            phase: forward, backward or optimizer.
            op: Innermost framework operator that launched it.
            op_shapes: Input shapes of that operator, as the tool prints them.
            module: Innermost nn.Module that launched it.
            range_path: Names of the enclosing ranges, outermost first, joined by ' / '.
            op_range_id: Range of `op`; key of `ranges`.
            range_id: Innermost enclosing range; key of `ranges`.
            step_id: Range of the step; key of `ranges`.
            frame_id: Innermost Python frame that launched it, else that which called the forward operator of its
                backward operator; key of `frames`.
            collective: Collective operation as the tool names it, else as the innermost range names it.
            message_bytes: Payload of the collective on this rank: input elements x element size.
            group_size: Ranks in the collective's process group.
            group_name: Name of the process group.
            group_seq: Sequence number of the collective within its group.
            peer_rank: Rank that a send goes to or a receive comes from (Kineto).
            metrics: ncu counters under ncu's raw names, in base units (ns, byte, hz, cycle, %).
            ncu_id: ncu's own ID of the launch within its report.
            nvtx_range: NVTX state that ncu printed with the launch.
            clock_control: ncu --clock-control, where known.
            cache_control: ncu --cache-control, where known.
            replay_mode: ncu --replay-mode, where known.
            passes: Passes that ncu needed for the launch.
            section_set: ncu set or sections, where known.
        """

    @overload
    def view(
        self,
        name: Literal["tool_agreement"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_family: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Each kernel key, grid and block as nsys, Kineto and ncu record it, side by side, with the kind of any
        difference. Do not add columns: they come from different executions. ncu measures a sample on purpose, so that
        its count is no disagreement. A class is NULL where there is nothing to compare or nothing can be said.
        Classes, first that applies: count_class (nsys against Kineto): same; hidden in a graph (the tool with fewer
        recorded graphs whole, and the other's launches by graphs make up for it); warm-up or window (equal in the
        steps that both recorded; the surplus lies before these, or elsewhere too); within steps (they differ in the
        steps that both recorded: dropped, or another choice of the library). naming_class: the tools that know the
        short name but not the key, anywhere in the run. kineto_class: waiting (a collective lasts as long as it
        waits); same (within 2 %); within spread (the median lies within nsys's 5th to 95th percentile); resolution
        (whole microseconds, less than 1 µs apart); profiler overhead (Kineto is longer). ncu_class (against nsys,
        else Kineto): waiting; same; within spread; several sizes (the 95th percentile of the timeline is above 1.5
        times the 5th: the launches differ in work, and which of them ncu measured is not known); faster alone (ncu
        runs nothing beside the kernel); where the clocks are known: clock (no longer than the ratio of the boost
        clock to the clock under ncu, 5 % allowed), or what is left beyond it, with clock where that is above 1.02:
        cache flush or replay by --cache-control, replay or cache flush where unknown. The clock of the timeline is
        the one sampled during these launches, where nsys (GPU metrics) or Kineto (counter events) sampled it, else
        the rated one: clock_source says which.

        Columns:
            run: Run.
            rank: Rank; NULL where not every tool knows its ranks: then all ranks are one.
            kernel_key: Canonical name.
            short_name: Base name.
            family: Kernel family.
            grid_x: Grid size, x.
            grid_y: Grid size, y.
            grid_z: Grid size, z.
            block_x: Block size, x.
            block_y: Block size, y.
            block_z: Block size, z.
            nsys_launches: Launches under nsys; NULL where it has none.
            kineto_launches: Launches under Kineto.
            ncu_launches: Launches measured by ncu, under the clock and cache settings with the most.
            nsys_median_ns: Median duration under nsys.
            nsys_p5_ns: 5th percentile.
            nsys_p95_ns: 95th percentile.
            kineto_median_ns: Median duration under Kineto.
            kineto_p5_ns: 5th percentile.
            kineto_p95_ns: 95th percentile.
            ncu_median_ns: Median duration under ncu.
            ncu_p5_ns: 5th percentile.
            ncu_p95_ns: 95th percentile.
            nsys_registers: Registers per thread, where all launches agree.
            kineto_registers: The same of Kineto.
            ncu_registers: The same of ncu.
            nsys_shared_bytes: Shared memory per block, where all launches agree.
            kineto_shared_bytes: The same of Kineto.
            ncu_shared_bytes: The same of ncu.
            kineto_estimated_occupancy_pct: Occupancy that Kineto estimates.
            ncu_theoretical_occupancy_pct: Occupancy that the launch allows, by ncu.
            ncu_achieved_occupancy_pct: Occupancy that ncu measured.
            kineto_ratio: Median under Kineto over median under nsys.
            ncu_ratio: Median under ncu over median under nsys, else Kineto.
            clock_ratio: Clock of the timeline's launches over that during ncu's; clock_source says whose it is.
            clock_source: Sampled during these launches (SM or GPC clock), rated (who states it), or datasheet.
            sampled_launches: Launches whose clock was sampled; NULL: none.
            sampled_clock_hz: Median of their mean clocks.
            min_sampled_clock_hz: Lowest.
            max_sampled_clock_hz: Highest.
            clock_control: ncu --clock-control, where known.
            cache_control: ncu --cache-control, where known.
            count_class: Why the launches of nsys and Kineto differ in number.
            naming_class: Tools that know such a kernel under another key.
            kineto_class: Why Kineto's durations differ from nsys's.
            ncu_class: Why ncu's durations differ from the timeline's.
        """

    @overload
    def view(
        self,
        name: Literal["tool_match"],
        *,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Each launch of one tool against another tool of the same run: the best grade at which the other tool knows it.
        Grades: launch (the very launch, one to one), configuration (the same kernel key, grid and block), key,
        short_name, none. Below launch the rows are alike, and which is which is not known: candidates counts the rows
        of the other tool that could be meant, and other_kernel_id is NULL. Processes are paired by rank; a launch is
        compared with all processes of that rank (with all of the run where a side has no rank). Per pair of tools
        both directions are listed. Reasons: name unknown; not profiled by ncu (it measured none alike, or the ones
        that it measured are others); outside the window (the other tool recorded other steps); hidden by graph mode
        (it recorded graphs whole); not recorded (it has none alike, or all that it has are others: dropped, or never
        launched there); order not certain (some that it has could be this one); another configuration; another
        variant (of the same base name).

        Columns:
            run: Run.
            tool: Tool of the launch.
            other_tool: The tool it is looked for in.
            rank: Rank of the launch; NULL where unknown.
            kernel_id: The launch; key of `kernels`.
            other_kernel_id: The same launch in the other tool, at grade launch.
            grade: launch, configuration, key, short_name or none.
            candidates: Rows of the other tool of that grade (launch: 1).
            evidence: What makes it certain, at grade launch (see matches).
            reason: Why it is not matched at grade launch.
            kernel_key: Canonical name.
            duration_ns: Duration of the launch in `tool`.
        """

    @overload
    def view(
        self,
        name: Literal["top_kernels"],
        *,
        how_many: int = ...,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        only_family: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """The kernels that take the most time, per run and tool.

        Parameters:
            how_many: Kernels to return for each run and tool; NULL for all.

        Columns:
            run: Run (one workload in one configuration).
            tool: Profiler: nsys, ncu or kineto. Never add them up: they saw the same launches.
            position: 1 for the kernel with the largest clipped total.
            time_pct: Share of the clipped kernel time of this run and tool, to one decimal.
            total_ns: Sum of duration_ns.
            clipped_ns: The same, with kernels whose end cannot be true (kernel_overruns) ended where the next one
                begins.
            instances: Kernel launches.
            avg_ns: Mean duration, to one decimal.
            median_ns: Median duration.
            family: Kernel family (gemm, collective, ...).
            name: Kernel name as the tool prints it.
        """

    @overload
    def view(
        self,
        name: Literal["tree_difference"],
        *,
        base: str | None = ...,
        other: str | None = ...,
        time: str | None = ...,
        rank: int | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """What changed between two runs: their trees of time_tree side by side, and the difference of each node, to the
        ns. The times are those of a mean steady step where both runs have steps, else of a mean window, over ranks,
        GPUs and recordings; start-up and wind-down are means over processes, and no part of the step. The branches
        sum to the window, and their differences to its difference, exactly: fractions of a ns are given to the
        largest remainders. A kernel that only one run has, and one that only the other has, are one row if they work
        for the same operators and shapes. Both runs are compared under one tool: nsys where both have it, else
        Kineto. The interval is that of Student's test over recordings (of Welch's, if there are as many of each):
        their steps are not replicates of a run.

        Parameters:
            base: Baseline run; NULL: the first of the store's two runs.
            other: Run that is compared with it; NULL: the second.
            time: Tool whose times are compared: nsys or kineto; NULL: nsys where both runs have it, else Kineto.
            rank: Only this rank; NULL: the mean over all.

        Columns:
            base_run: Run that is the measure.
            other_run: Run that is compared with it.
            tool: Tool whose times are compared.
            unit: per step, or per window where a run has no steps.
            row_index: Place of the row, from 0: the window.
            parent_index: row_index of the row that it is a part of; NULL for the window, start-up and wind-down.
            depth: 0 for the window, start-up and wind-down; 1 for branches; then leaves.
            node: window, a branch, a cause, or the name of a kernel, call, range or direction (in other, where it has
                it).
            base_node: The kernel's name in base, where it has another one there.
            state: new, gone or renamed; NULL where both runs have it by this name.
            base_ns: Its time in base.
            other_ns: Its time in other.
            difference_ns: other_ns minus base_ns.
            low_ns: Lower end of the 95 % interval of the window's difference; NULL for its parts, and for one
                recording of each.
            high_ns: Upper end.
            change_pct: difference_ns as a share of base_ns.
            base_count: Kernels, copies or gaps of it in a step or window of base; NULL where not counted.
            other_count: The same in other.
        """

    @overload
    def view(
        self,
        name: Literal["true_roofline"],
        *,
        kernel: str | None = ...,
        kernel_regex: str | None = ...,
        assume_gpu: str | None = ...,
        force_gpu: bool = ...,
        time: str | None = ...,
        grade: str = ...,
        ranks: str = ...,
        launches: str = ...,
        work: str = ...,
        only_run: _Names | None = ...,
        only_rank: _Numbers | None = ...,
        only_family: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """The true roofline: ncu's work and traffic over the undisturbed duration of the same kernel. Work and bytes of
        one launch are what ncu counted; ncu's own duration is of a replay at a locked clock with flushed caches. The
        time here is the median of the launches of the same kernel key, grid and block in nsys or Kineto, on the rank
        that ncu measured (on all ranks where that is not known, or has none). Where the launches of a configuration
        take very different times (95th percentile above 1.5 times the 5th) they may differ in work: then only those
        count that are known to be the ones that ncu counted (pairs of grade launch), and without such pairs the point
        is not plotted. Roofs stand at the clock that was sampled during these launches (GPU metrics of nsys, counter
        events of Kineto; the median over the launches, with its spread); where none was, at the rated clock of the
        GPU, where a tool (or else a sidecar) states one above ncu's. The roof of DRAM and that of L2 have clocks of
        their own and are as ncu measured them. A row per row of roofline; then, most GPU time first, a row per kernel
        that nothing counted, configuration, operator and shapes, whose operations and least bytes follow from these
        shapes (shape_work): at level dram only, under the datasheet's roofs, with an intensity that is an upper
        bound. They are of all ranks unless each is asked for.

        Parameters:
            kernel: Part of the kernel's name (any case); NULL for all.
            kernel_regex: Regular expression that the name matches; NULL for all.
            assume_gpu: Product name for the datasheet peaks, where the capture lacks it.
            force_gpu: Whether assume_gpu is taken for every kernel, unchecked.
            time: nsys or kineto; NULL: nsys where it recorded kernels of the run, else Kineto.
            grade: Worst grade whose time is taken: configuration, key (other grids and blocks) or short_name (other
                variants).
            ranks: 'same': the rank that ncu measured; 'each': a row per rank, with another rank's counters where it
                has none.
            launches: 'auto' (see above), 'all' launches of the configuration, or 'matched': only those that ncu
                counted.
            work: 'any': from counters, from shapes where there are none; 'counters' or 'shapes': only these.

        Columns:
            configuration_id: Configuration of the counters; key of ncu_by_config.
            run: Run.
            rank: Rank of the launches whose time it is; NULL: all ranks together.
            counters_rank: Rank that ncu measured; NULL where unknown.
            gpu: Product name of the GPU that ncu measured; NULL where unknown.
            compute_capability: Its compute capability.
            name: Kernel name as ncu prints it.
            short_name: Base name of the kernel.
            kernel_key: Canonical name, the same in the three tools.
            family: Family of the kernel.
            grid_x: Grid size, x.
            grid_y: Grid size, y.
            grid_z: Grid size, z.
            block_x: Block size, x.
            block_y: Block size, y.
            block_z: Block size, z.
            clock_control: ncu --clock-control, where known.
            cache_control: ncu --cache-control, where known.
            summarised: True where only averages over ncu's launches are known.
            simulated: True where a capture behind it is simulated.
            level: dram, l2 or l1.
            precision: As in roofline.
            is_main: True for one precision of each configuration: the one that does most of the operations.
            plottable: Whether the kernel has a point: work, traffic and duration are known and above 0.
            not_plottable_reason: Why not: what to collect, or what keeps the time from belonging to the counters.
            warning: Why the point may mislead.
            time_tool: Tool whose time it is: nsys or kineto.
            time_grade: How sure the launches are those of the counters: launch, configuration, key or short_name.
            time_ranks: same rank, another rank (than ncu measured) or all ranks.
            time_launches: all launches of the configuration, or matched: only those that ncu counted.
            launches: Launches behind the time.
            duration_ns: Their median duration, rounded to 1 ns.
            min_duration_ns: Shortest.
            max_duration_ns: Longest.
            p5_duration_ns: 5th percentile, interpolated linearly between the two nearest launches, rounded to 1 ns.
            p95_duration_ns: 95th percentile, interpolated the same way.
            work_source: counters, or shapes: from those of the operator, where nothing counted.
            work_flop: Operations of one launch (integer operations for integer paths).
            work_definition: How they were counted.
            traffic_bytes: Bytes that the level moved in one launch.
            traffic_source: Metrics behind them.
            level_definition: Definition of the level's bytes; never compare two.
            achieved_flop_per_s: work_flop / duration: what the kernel achieved.
            achieved_bytes_per_s: traffic_bytes / duration: what the kernel achieved.
            arithmetic_intensity: work_flop / traffic_bytes, operations per byte.
            ncu_launches: Launches that ncu measured.
            ncu_duration_ns: Their median duration under ncu.
            ncu_achieved_flop_per_s: work_flop / ncu_duration: ncu's own point, of the same intensity.
            peak_flop_per_s: Compute roof: ncu's peak per cycle times roof_clock_hz.
            peak_bytes_per_s: Memory roof: the peak bandwidth of ncu's report; that of L1 scaled to roof_clock_hz.
            ridge_point: peak_flop_per_s / peak_bytes_per_s: the intensity at which the two roofs meet.
            roof_pct: Achieved performance in % of the roof at this intensity; can exceed 100 (boost clocks).
            roof_clock_hz: SM clock that peak_flop_per_s holds for; roof_clock_source says whose.
            roof_clock_source: Whose clock that is: sampled, rated, highest (with who states it), or ncu's, locked or
                not.
            min_roof_clock_hz: Where it was sampled: the lowest of a launch; roof_clock_hz is their median.
            max_roof_clock_hz: The highest.
            sampled_launches: Launches whose clock was sampled; NULL where roof_clock_source is another.
            ncu_clock_hz: SM clock while ncu measured.
            datasheet_peak_flop_per_s: Dense compute peak of the datasheet; scaled by SMs for a slice of a GPU.
            datasheet_peak_bytes_per_s: Peak bandwidth of the datasheet; NULL for L1, and for a slice of a GPU.
            datasheet_ridge_point: The same of the two peaks of the datasheet.
            datasheet_roof_pct: Achieved performance in % of the datasheet's roof at this intensity, scaled to
                roof_clock_hz.
            datasheet_clock_hz: Clock that the datasheet's compute peak holds for.
            datasheet_gpu: Row of gpu_peaks.
            datasheet_source: Where the datasheet's numbers come from, and how they were scaled.
        """

    @overload
    def view(
        self,
        name: Literal["unclassified_kernels"],
        *,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Kernels of family `other`: the names that no rule recognised, per run and tool, with the share of time they
        hold.

        Columns:
            run: Run (one workload in one configuration).
            tool: Profiler: nsys, ncu or kineto. Never add them up: they saw the same launches.
            time_pct: Share of the summed kernel time of this run and tool, to one decimal.
            total_ns: Sum of duration_ns.
            instances: Kernel launches.
            name: Kernel name as the tool prints it.
        """

    @overload
    def view(
        self,
        name: Literal["unified_memory_summary", "um_sum"],
        *,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Transfers and page faults of unified memory by virtual address, per run: the numbers of `nsys stats um_sum`,
        all rows, those first to which the host gave the most bytes.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys: no other tool records unified memory.
            address: Virtual address of the first page (two's complement of the unsigned value); NULL: not recorded.
            htod_bytes: Bytes that migrated from the host to a device; NULL where none did.
            dtoh_bytes: Bytes that migrated from a device to the host; NULL where none did.
            cpu_page_faults: Page faults on the CPU; NULL where none was recorded.
            gpu_page_faults: Page faults on GPUs; NULL where none was recorded.
            bytes_per_s: Bytes of both directions over the time of these migrations.
        """

    @overload
    def view(
        self,
        name: Literal["unified_memory_totals", "um_total_sum"],
        *,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """Transfers and page faults of unified memory in total, per run: the numbers of `nsys stats um_total_sum`.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys: no other tool records unified memory.
            htod_bytes: Bytes that migrated from the host to a device; NULL where none did.
            dtoh_bytes: Bytes that migrated from a device to the host; NULL where none did.
            cpu_page_faults: Page faults on the CPU; NULL where none was recorded.
            gpu_page_faults: Page faults on GPUs; NULL where none was recorded.
            first_address: Lowest virtual address of a migration or a fault.
            last_address: Highest one.
        """

    @overload
    def view(
        self,
        name: Literal["verdict"],
        *,
        only_run: _Names | None = ...,
        only_tool: _Names | None = ...,
        **only_columns: object,
    ) -> pa.Table:
        """What bounds each run, and by how much: the verdict, at most three findings, and what kept parts of it from
        being judged. The verdict is read off the tree of time_tree: the largest of computing, exposed communication,
        exposed copies, idle and not recorded, start-up or wind-down where the window is no steady steps; below 70 %
        the second is named beside it. Findings are leaves of the tree that can be acted upon, at least 2 % of the
        window: by what curing them wins where that is known (late ranks), else by their size. Conditions are what a
        capture must fulfil for its times to be judged, where it does not.

        Columns:
            run: Run (one workload in one configuration).
            tool: nsys, kineto or ncu. Never add them up: they saw the same work.
            place: 0 for the verdict; findings and conditions from 1 on.
            kind: verdict, finding or condition.
            cause: computing, input, host, communication, late rank, copies, start-up, wind-down, not recorded, cpu
                (no GPU work), kernel (ncu alone) or none (nothing to judge); of a finding the leaf, of a condition
                what fails.
            subject: The kernel, call, range, direction or ranks that it is about; NULL where there is none.
            total_ns: How long, over all ranks, GPUs and steps; NULL where unknown.
            of_ns: The whole: the windows of all trees; NULL for what is no part of them (start-up, wind-down).
            share_pct: total_ns as a share of of_ns, to one decimal; of a condition the share that fails.
            winnable_ns: What the job would gain by curing it, where that is known.
            text: The same as a sentence.
            command: The command that goes with it: its name, then its words, then its options as --name=value; NULL
                without one.
        """

    @overload
    def view(self, name: str, **parameters: object) -> pa.Table:
        """Return a view, by its name or by what another tool calls it, as an Arrow table.

        Raises UsageError for an unknown view or parameter. Warns (BalanceWarning) where the rows do not keep the view's books.
        """
