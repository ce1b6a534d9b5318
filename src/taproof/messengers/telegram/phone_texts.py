"""What the bot says when a project asks for the user's phone number: in each language of `texts.py`.

The same rules hold as there. `{share}`, `{without}` and `{cancel}` are labels of buttons.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class PhoneTexts:
    """Those sentences in one language. `notice` is shown in a pop-up, which holds 200 characters."""

    prompt: str
    """Takes the place of the prompt that was confirmed; with {project}, {share} and {cancel}."""
    prompt_optional: str
    """The same where the project leaves it to the user; with {without} too."""
    share_button: str
    without_button: str
    keyboard: str
    """The message that brings the button, with {project}."""
    notice: str
    wrong: str
    """With {share}: what was sent is not the user's own contact."""
    unasked: str
    over: str
    """The message that takes the button away."""


PHONE_ENGLISH: Final = PhoneTexts(
    prompt="{project} asks for your phone number. Nobody is signed in until you share it.\n\n"
    "To share it, tap {share} at the bottom of this chat. If you do not want that, tap {cancel}.",
    prompt_optional="{project} asks for your phone number. Nobody is signed in yet.\n\n"
    "To share it, tap {share} at the bottom of this chat. To sign in without it, tap {without}; to sign in not at all, {cancel}.",
    share_button="Share my phone number",
    without_button="Continue without",
    keyboard="Share your phone number with {project}?",
    notice="Your phone number is asked for too.",
    wrong="Please use the button {share} at the bottom of this chat: only your own number counts, shared with that button.",
    unasked="No sign-in is waiting for a phone number. I have not kept this one.",
    over="Your phone number is not asked for any more.",
)

PHONE_RUSSIAN: Final = PhoneTexts(
    prompt="{project} запрашивает ваш номер телефона. Пока вы его не отправите, вход не выполнен.\n\n"
    "Чтобы отправить номер, нажмите «{share}» внизу чата. Если вы этого не хотите, нажмите «{cancel}».",
    prompt_optional="{project} запрашивает ваш номер телефона. Вход ещё не выполнен.\n\n"
    "Чтобы отправить номер, нажмите «{share}» внизу чата. Чтобы войти без него, нажмите «{without}», чтобы не входить совсем — «{cancel}».",
    share_button="Отправить мой номер телефона",
    without_button="Продолжить без номера",
    keyboard="Отправить ваш номер телефона в {project}?",
    notice="Запрашивается также ваш номер телефона.",
    wrong="Пожалуйста, нажмите кнопку «{share}» внизу чата: принимается только ваш собственный номер, отправленный этой кнопкой.",
    unasked="Ни один вход сейчас не ждёт номера телефона. Этот номер не сохранён.",
    over="Номер телефона больше не запрашивается.",
)

PHONE_UKRAINIAN: Final = PhoneTexts(
    prompt="{project} запитує ваш номер телефону. Доки ви його не надішлете, вхід не виконано.\n\n"
    "Щоб надіслати номер, натисніть «{share}» внизу чату. Якщо ви цього не хочете, натисніть «{cancel}».",
    prompt_optional="{project} запитує ваш номер телефону. Вхід ще не виконано.\n\n"
    "Щоб надіслати номер, натисніть «{share}» внизу чату. Щоб увійти без нього, натисніть «{without}», щоб не входити зовсім — «{cancel}».",
    share_button="Надіслати мій номер телефону",
    without_button="Продовжити без номера",
    keyboard="Надіслати ваш номер телефону в {project}?",
    notice="Потрібен також ваш номер телефону.",
    wrong="Будь ласка, натисніть кнопку «{share}» внизу чату: приймається лише ваш власний номер, надісланий цією кнопкою.",
    unasked="Жоден вхід зараз не чекає на номер телефону. Цей номер не збережено.",
    over="Номер телефону більше не запитується.",
)

PHONE_SPANISH: Final = PhoneTexts(
    prompt="{project} pide su número de teléfono. Nadie inicia sesión hasta que lo comparta.\n\n"
    "Para compartirlo, pulse {share} en la parte inferior de este chat. Si no quiere, pulse {cancel}.",
    prompt_optional="{project} pide su número de teléfono. Todavía nadie ha iniciado sesión.\n\n"
    "Para compartirlo, pulse {share} en la parte inferior de este chat. Para entrar sin él, pulse {without}; para no entrar, {cancel}.",
    share_button="Compartir mi número de teléfono",
    without_button="Continuar sin él",
    keyboard="¿Compartir su número de teléfono con {project}?",
    notice="También se pide su número de teléfono.",
    wrong="Por favor, use el botón {share} en la parte inferior de este chat: solo vale su propio número, compartido con ese botón.",
    unasked="Ningún inicio de sesión espera un número de teléfono. Este no se ha guardado.",
    over="Ya no se pide su número de teléfono.",
)

PHONE_PORTUGUESE: Final = PhoneTexts(
    prompt="{project} pede o seu número de telefone. Ninguém entra enquanto você não o compartilhar.\n\n"
    "Para compartilhá-lo, toque em {share} na parte de baixo desta conversa. Se não quiser, toque em {cancel}.",
    prompt_optional="{project} pede o seu número de telefone. Ainda ninguém entrou.\n\n"
    "Para compartilhá-lo, toque em {share} na parte de baixo desta conversa. Para entrar sem ele, toque em {without}; para não entrar, em {cancel}.",
    share_button="Compartilhar meu número de telefone",
    without_button="Continuar sem ele",
    keyboard="Compartilhar o seu número de telefone com {project}?",
    notice="O seu número de telefone também é pedido.",
    wrong="Por favor, use o botão {share} na parte de baixo desta conversa: só vale o seu próprio número, compartilhado com esse botão.",
    unasked="Nenhuma entrada espera um número de telefone. Este não foi guardado.",
    over="O seu número de telefone já não é pedido.",
)

PHONE_PERSIAN: Final = PhoneTexts(
    prompt="{project} شماره تلفن شما را می‌خواهد. تا آن را نفرستید ورودی انجام نمی‌شود.\n\n"
    "برای فرستادن، «{share}» را در پایین این گفتگو بزنید. اگر نمی‌خواهید، «{cancel}» را بزنید.",
    prompt_optional="{project} شماره تلفن شما را می‌خواهد. هنوز ورودی انجام نشده است.\n\n"
    "برای فرستادن، «{share}» را در پایین این گفتگو بزنید. برای ورود بدون آن «{without}» و برای صرف‌نظر از ورود «{cancel}» را بزنید.",
    share_button="ارسال شماره تلفن من",
    without_button="ادامه بدون شماره",
    keyboard="شماره تلفن شما برای {project} فرستاده شود؟",
    notice="شماره تلفن شما هم خواسته شده است.",
    wrong="لطفاً دکمه «{share}» را در پایین این گفتگو بزنید: فقط شماره خودتان که با این دکمه فرستاده شود پذیرفته است.",
    unasked="هیچ ورودی منتظر شماره تلفن نیست. این شماره نگه داشته نشد.",
    over="شماره تلفن شما دیگر خواسته نمی‌شود.",
)

PHONE_ARABIC: Final = PhoneTexts(
    prompt="يطلب {project} رقم هاتفك. لا يُسجَّل دخول أحد قبل أن تشاركه.\n\n"
    "لمشاركته، اضغط على «{share}» أسفل هذه المحادثة. إذا كنت لا تريد ذلك، فاضغط على «{cancel}».",
    prompt_optional="يطلب {project} رقم هاتفك. لم يُسجَّل دخول أحد بعد.\n\n"
    "لمشاركته، اضغط على «{share}» أسفل هذه المحادثة. للدخول بدونه اضغط على «{without}»، ولعدم الدخول اضغط على «{cancel}».",
    share_button="مشاركة رقم هاتفي",
    without_button="المتابعة بدونه",
    keyboard="هل تريد مشاركة رقم هاتفك مع {project}؟",
    notice="رقم هاتفك مطلوب أيضًا.",
    wrong="يُرجى استخدام الزر «{share}» أسفل هذه المحادثة: لا يُقبل إلا رقمك أنت، مُرسَلًا بهذا الزر.",
    unasked="لا يوجد تسجيل دخول ينتظر رقم هاتف. لم يُحفظ هذا الرقم.",
    over="لم يعد رقم هاتفك مطلوبًا.",
)

PHONE_INDONESIAN: Final = PhoneTexts(
    prompt="{project} meminta nomor telepon Anda. Tidak ada yang masuk sebelum Anda membagikannya.\n\n"
    "Untuk membagikannya, ketuk {share} di bagian bawah obrolan ini. Jika tidak mau, ketuk {cancel}.",
    prompt_optional="{project} meminta nomor telepon Anda. Belum ada yang masuk.\n\n"
    "Untuk membagikannya, ketuk {share} di bagian bawah obrolan ini. Untuk masuk tanpa nomor, ketuk {without}; untuk tidak masuk, ketuk {cancel}.",
    share_button="Bagikan nomor telepon saya",
    without_button="Lanjut tanpa nomor",
    keyboard="Bagikan nomor telepon Anda kepada {project}?",
    notice="Nomor telepon Anda juga diminta.",
    wrong="Silakan gunakan tombol {share} di bagian bawah obrolan ini: hanya nomor Anda sendiri yang diterima, dibagikan dengan tombol itu.",
    unasked="Tidak ada permintaan masuk yang menunggu nomor telepon. Nomor ini tidak disimpan.",
    over="Nomor telepon Anda tidak diminta lagi.",
)

PHONE_TURKISH: Final = PhoneTexts(
    prompt="{project} telefon numaranızı istiyor. Paylaşana kadar oturum açılmaz.\n\n"
    "Paylaşmak için bu sohbetin altındaki “{share}” düğmesine dokunun. İstemiyorsanız “{cancel}” düğmesine dokunun.",
    prompt_optional="{project} telefon numaranızı istiyor. Henüz oturum açılmadı.\n\n"
    "Paylaşmak için bu sohbetin altındaki “{share}” düğmesine dokunun. Numarasız oturum açmak için “{without}”, hiç açmamak için “{cancel}” düğmesine dokunun.",
    share_button="Telefon numaramı paylaş",
    without_button="Numarasız devam et",
    keyboard="Telefon numaranız {project} ile paylaşılsın mı?",
    notice="Telefon numaranız da isteniyor.",
    wrong="Lütfen bu sohbetin altındaki “{share}” düğmesini kullanın: yalnızca bu düğmeyle paylaşılan kendi numaranız geçerlidir.",
    unasked="Telefon numarası bekleyen bir oturum açma isteği yok. Bu numara saklanmadı.",
    over="Telefon numaranız artık istenmiyor.",
)

PHONE_UZBEK: Final = PhoneTexts(
    prompt="{project} telefon raqamingizni so‘ramoqda. Siz uni yubormaguningizcha kirish amalga oshirilmaydi.\n\n"
    "Yuborish uchun shu chat pastidagi “{share}” tugmasini bosing. Xohlamasangiz, “{cancel}” tugmasini bosing.",
    prompt_optional="{project} telefon raqamingizni so‘ramoqda. Kirish hali amalga oshirilmadi.\n\n"
    "Yuborish uchun shu chat pastidagi “{share}” tugmasini bosing. Raqamsiz kirish uchun “{without}”, umuman kirmaslik uchun “{cancel}” tugmasini bosing.",
    share_button="Telefon raqamimni yuborish",
    without_button="Raqamsiz davom etish",
    keyboard="Telefon raqamingiz {project} tizimiga yuborilsinmi?",
    notice="Telefon raqamingiz ham so‘ralmoqda.",
    wrong="Iltimos, shu chat pastidagi “{share}” tugmasidan foydalaning: faqat shu tugma bilan yuborilgan o‘z raqamingiz qabul qilinadi.",
    unasked="Hech bir kirish so‘rovi telefon raqamini kutmayapti. Bu raqam saqlanmadi.",
    over="Telefon raqamingiz endi so‘ralmaydi.",
)
