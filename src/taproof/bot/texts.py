"""What the bot says, in each language.

A language is one `Texts` object in `LANGUAGES`: mypy names every sentence that is missing. The sentences are plain
text, sent as HTML: no `<`, `>` or `&` in them. Ages use words or units that need no plural forms. `{project}` and
`{when}` are put in as isolates, so they may stand anywhere in a right-to-left sentence.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """Every sentence of the bot in one language.

    The `…_notice` sentences, `foreign` and `unknown` are also shown in a pop-up, which holds 200 characters.
    `{n}` in `seconds_ago` is 5 to 119, in `minutes_ago` at least 2.
    """

    confirm_button: str
    cancel_button: str
    prompt: str
    """With {project}, {age} and {cancel}, the label of the Cancel button."""
    just_now: str
    seconds_ago: str
    minutes_ago: str
    confirmed: str
    """With {project} and {when}; so has `cancelled`."""
    cancelled: str
    expired: str
    """With {project}."""
    confirmed_notice: str
    """With {when}; so has `cancelled_notice`."""
    cancelled_notice: str
    expired_notice: str
    foreign: str
    unknown: str
    help: str
    private_only: str


_ENGLISH: Final = Texts(
    confirm_button="Confirm",
    cancel_button="Cancel",
    prompt="Sign in to {project}?\n\nRequested: {age}.\n\nIf you did not start this, tap {cancel}.",
    just_now="just now",
    seconds_ago="{n} seconds ago",
    minutes_ago="{n} minutes ago",
    confirmed="You confirmed the sign-in to {project}.\n{when}\n\nYou can go back to where you started.",
    cancelled="You cancelled the sign-in to {project}.\n{when}\n\nNobody was signed in.",
    expired="The request to sign in to {project} has expired. Nobody was signed in.\n\nTo sign in, start again there.",
    confirmed_notice="Confirmed: {when}",
    cancelled_notice="Cancelled: {when}",
    expired_notice="This request has expired. To sign in, start again.",
    foreign="This request belongs to someone else. To sign in yourself, start again on the website or in the app.",
    unknown="This request is unknown or no longer valid. To sign in, start again on the website or in the app.",
    help="I sign you in to websites and apps without a password.\n\n"
    "Choose to sign in there and open the link or scan the code that you are shown. "
    "I will then ask you here to confirm.",
    private_only="Please open a private chat with me: sign-in requests are answered only there.",
)

_RUSSIAN: Final = Texts(
    confirm_button="Подтвердить",
    cancel_button="Отменить",
    prompt="Войти в {project}?\n\nЗапрос создан: {age}.\n\nЕсли вы этого не делали, нажмите «{cancel}».",
    just_now="только что",
    seconds_ago="{n} сек. назад",
    minutes_ago="{n} мин. назад",
    confirmed="Вы подтвердили вход в {project}.\n{when}\n\nМожно вернуться туда, откуда вы начали.",
    cancelled="Вы отменили вход в {project}.\n{when}\n\nВход не выполнен.",
    expired="Срок действия запроса на вход в {project} истёк. Вход не выполнен.\n\nЧтобы войти, начните заново.",
    confirmed_notice="Подтверждено: {when}",
    cancelled_notice="Отменено: {when}",
    expired_notice="Срок действия запроса истёк. Чтобы войти, начните заново.",
    foreign="Этот запрос принадлежит другому пользователю. Чтобы войти под своей учётной записью, начните заново на сайте или в приложении.",
    unknown="Этот запрос неизвестен или больше не действует. Чтобы войти, начните заново на сайте или в приложении.",
    help="Я помогаю входить на сайты и в приложения без пароля.\n\n"
    "Выберите там вход через мессенджер и откройте ссылку или отсканируйте код. "
    "После этого я попрошу вас подтвердить вход здесь.",
    private_only="Пожалуйста, откройте личный чат со мной: на запросы входа я отвечаю только там.",
)

_UKRAINIAN: Final = Texts(
    confirm_button="Підтвердити",
    cancel_button="Скасувати",
    prompt="Увійти в {project}?\n\nЗапит створено: {age}.\n\nЯкщо ви цього не робили, натисніть «{cancel}».",
    just_now="щойно",
    seconds_ago="{n} с тому",
    minutes_ago="{n} хв тому",
    confirmed="Ви підтвердили вхід у {project}.\n{when}\n\nМожна повернутися туди, звідки ви почали.",
    cancelled="Ви скасували вхід у {project}.\n{when}\n\nВхід не виконано.",
    expired="Термін дії запиту на вхід у {project} минув. Вхід не виконано.\n\nЩоб увійти, почніть знову.",
    confirmed_notice="Підтверджено: {when}",
    cancelled_notice="Скасовано: {when}",
    expired_notice="Термін дії запиту минув. Щоб увійти, почніть знову.",
    foreign="Цей запит належить іншому користувачеві. Щоб увійти під своїм обліковим записом, почніть знову на сайті або в застосунку.",
    unknown="Цей запит невідомий або вже не дійсний. Щоб увійти, почніть знову на сайті або в застосунку.",
    help="Я допомагаю входити на сайти та в застосунки без пароля.\n\n"
    "Виберіть там вхід через месенджер і відкрийте посилання або відскануйте код. "
    "Після цього я попрошу вас підтвердити вхід тут.",
    private_only="Будь ласка, відкрийте приватний чат зі мною: на запити входу я відповідаю лише там.",
)

_SPANISH: Final = Texts(
    confirm_button="Confirmar",
    cancel_button="Cancelar",
    prompt="¿Iniciar sesión en {project}?\n\nSolicitado: {age}.\n\nSi usted no lo ha solicitado, pulse {cancel}.",
    just_now="ahora mismo",
    seconds_ago="hace {n} segundos",
    minutes_ago="hace {n} minutos",
    confirmed="Ha confirmado el inicio de sesión en {project}.\n{when}\n\nYa puede volver a donde empezó.",
    cancelled="Ha cancelado el inicio de sesión en {project}.\n{when}\n\nNadie ha iniciado sesión.",
    expired="La solicitud de inicio de sesión en {project} ha caducado. Nadie ha iniciado sesión.\n\nPara entrar, empiece de nuevo.",
    confirmed_notice="Confirmado: {when}",
    cancelled_notice="Cancelado: {when}",
    expired_notice="Esta solicitud ha caducado. Para entrar, empiece de nuevo.",
    foreign="Esta solicitud pertenece a otra persona. Para iniciar sesión usted, empiece de nuevo en el sitio web o la aplicación.",
    unknown="Esta solicitud no existe o ya no es válida. Para iniciar sesión, empiece de nuevo en el sitio web o la aplicación.",
    help="Le ayudo a iniciar sesión en sitios web y aplicaciones sin contraseña.\n\n"
    "Elija allí iniciar sesión con su cuenta de mensajería y abra el enlace o escanee el código que se le muestre. "
    "Después le pediré aquí que lo confirme.",
    private_only="Por favor, abra un chat privado conmigo: solo allí respondo a las solicitudes de inicio de sesión.",
)

_PORTUGUESE: Final = Texts(
    confirm_button="Confirmar",
    cancel_button="Cancelar",
    prompt="Entrar em {project}?\n\nSolicitado: {age}.\n\nSe não foi você que iniciou isto, toque em {cancel}.",
    just_now="agora mesmo",
    seconds_ago="há {n} segundos",
    minutes_ago="há {n} minutos",
    confirmed="Você confirmou a entrada em {project}.\n{when}\n\nJá pode voltar para onde começou.",
    cancelled="Você cancelou a entrada em {project}.\n{when}\n\nNinguém entrou.",
    expired="O pedido de entrada em {project} expirou. Ninguém entrou.\n\nPara entrar, comece de novo.",
    confirmed_notice="Confirmado: {when}",
    cancelled_notice="Cancelado: {when}",
    expired_notice="Este pedido expirou. Para entrar, comece de novo.",
    foreign="Este pedido pertence a outra pessoa. Para entrar com a sua conta, comece de novo no site ou no aplicativo.",
    unknown="Este pedido é desconhecido ou já não é válido. Para entrar, comece de novo no site ou no aplicativo.",
    help="Eu ajudo você a entrar em sites e aplicativos sem senha.\n\n"
    "Escolha lá entrar com a sua conta do mensageiro e abra o link ou escaneie o código exibido. "
    "Depois pedirei aqui a sua confirmação.",
    private_only="Por favor, abra uma conversa privada comigo: só respondo a pedidos de entrada por lá.",
)

_PERSIAN: Final = Texts(
    confirm_button="تأیید",
    cancel_button="لغو",
    prompt="می‌خواهید وارد {project} شوید؟\n\nزمان درخواست: {age}.\n\nاگر شما این درخواست را نداده‌اید، «{cancel}» را بزنید.",
    just_now="همین حالا",
    seconds_ago="{n} ثانیه پیش",
    minutes_ago="{n} دقیقه پیش",
    confirmed="شما ورود به {project} را تأیید کردید.\n{when}\n\nمی‌توانید به جایی که از آن آغاز کردید برگردید.",
    cancelled="شما ورود به {project} را لغو کردید.\n{when}\n\nورودی انجام نشد.",
    expired="مهلت درخواست ورود به {project} تمام شده است. ورودی انجام نشد.\n\nبرای ورود، دوباره از همان‌جا شروع کنید.",
    confirmed_notice="تأیید شد: {when}",
    cancelled_notice="لغو شد: {when}",
    expired_notice="مهلت این درخواست تمام شده است. برای ورود، دوباره شروع کنید.",
    foreign="این درخواست متعلق به شخص دیگری است. اگر خودتان می‌خواهید وارد شوید، در وب‌سایت یا برنامه دوباره شروع کنید.",
    unknown="این درخواست ناشناخته است یا دیگر معتبر نیست. برای ورود، در وب‌سایت یا برنامه دوباره شروع کنید.",
    help="من به شما کمک می‌کنم بدون گذرواژه وارد وب‌سایت‌ها و برنامه‌ها شوید.\n\n"
    "در آنجا ورود با پیام‌رسان را انتخاب کنید و پیوند را باز کنید یا کد را اسکن کنید. "
    "سپس من همین‌جا از شما تأیید می‌خواهم.",
    private_only="لطفاً یک گفتگوی خصوصی با من باز کنید: فقط آنجا به درخواست‌های ورود پاسخ می‌دهم.",
)

_ARABIC: Final = Texts(
    confirm_button="تأكيد",
    cancel_button="إلغاء",
    prompt="هل تريد تسجيل الدخول إلى {project}؟\n\nوقت الطلب: {age}.\n\nإذا لم تكن أنت من بدأ هذا، فاضغط على «{cancel}».",
    just_now="الآن",
    seconds_ago="قبل {n} ث",
    minutes_ago="قبل {n} د",
    confirmed="لقد أكّدت تسجيل الدخول إلى {project}.\n{when}\n\nيمكنك العودة إلى حيث بدأت.",
    cancelled="لقد ألغيت تسجيل الدخول إلى {project}.\n{when}\n\nلم يُسجَّل دخول أحد.",
    expired="انتهت صلاحية طلب تسجيل الدخول إلى {project}. لم يُسجَّل دخول أحد.\n\nلتسجيل الدخول، ابدأ من جديد.",
    confirmed_notice="تم التأكيد: {when}",
    cancelled_notice="تم الإلغاء: {when}",
    expired_notice="انتهت صلاحية هذا الطلب. لتسجيل الدخول، ابدأ من جديد.",
    foreign="هذا الطلب يخص شخصًا آخر. لتسجيل دخولك أنت، ابدأ من جديد في الموقع أو التطبيق.",
    unknown="هذا الطلب غير معروف أو لم يعد صالحًا. لتسجيل الدخول، ابدأ من جديد في الموقع أو التطبيق.",
    help="أساعدك على تسجيل الدخول إلى المواقع والتطبيقات دون كلمة مرور.\n\n"
    "اختر هناك تسجيل الدخول عبر تطبيق المراسلة، ثم افتح الرابط أو امسح الرمز الذي يظهر لك. "
    "بعد ذلك سأطلب منك التأكيد هنا.",
    private_only="يُرجى فتح محادثة خاصة معي: لا أرد على طلبات تسجيل الدخول إلا هناك.",
)

_INDONESIAN: Final = Texts(
    confirm_button="Konfirmasi",
    cancel_button="Batalkan",
    prompt="Masuk ke {project}?\n\nDiminta: {age}.\n\nJika bukan Anda yang memulai ini, ketuk {cancel}.",
    just_now="baru saja",
    seconds_ago="{n} detik yang lalu",
    minutes_ago="{n} menit yang lalu",
    confirmed="Anda telah mengonfirmasi masuk ke {project}.\n{when}\n\nAnda dapat kembali ke tempat Anda memulai.",
    cancelled="Anda telah membatalkan masuk ke {project}.\n{when}\n\nTidak ada yang masuk.",
    expired="Permintaan masuk ke {project} telah kedaluwarsa. Tidak ada yang masuk.\n\nUntuk masuk, silakan mulai lagi.",
    confirmed_notice="Dikonfirmasi: {when}",
    cancelled_notice="Dibatalkan: {when}",
    expired_notice="Permintaan ini telah kedaluwarsa. Untuk masuk, silakan mulai lagi.",
    foreign="Permintaan ini milik orang lain. Jika Anda ingin masuk, silakan mulai lagi di situs web atau aplikasinya.",
    unknown="Permintaan ini tidak dikenal atau tidak berlaku lagi. Untuk masuk, silakan mulai lagi di situs web atau aplikasinya.",
    help="Saya membantu Anda masuk ke situs web dan aplikasi tanpa kata sandi.\n\n"
    "Di sana, pilih masuk dengan akun perpesanan Anda, lalu buka tautan atau pindai kode yang ditampilkan. "
    "Setelah itu saya akan meminta konfirmasi Anda di sini.",
    private_only="Silakan buka obrolan pribadi dengan saya: permintaan masuk hanya saya jawab di sana.",
)

_TURKISH: Final = Texts(
    confirm_button="Onayla",
    cancel_button="İptal et",
    prompt="{project} için oturum açılsın mı?\n\nİstek zamanı: {age}.\n\nBunu siz başlatmadıysanız “{cancel}” düğmesine dokunun.",
    just_now="az önce",
    seconds_ago="{n} saniye önce",
    minutes_ago="{n} dakika önce",
    confirmed="{project} için oturum açmayı onayladınız.\n{when}\n\nBaşladığınız yere dönebilirsiniz.",
    cancelled="{project} için oturum açmayı iptal ettiniz.\n{when}\n\nOturum açılmadı.",
    expired="{project} için oturum açma isteğinin süresi doldu. Oturum açılmadı.\n\nOturum açmak için lütfen yeniden başlayın.",
    confirmed_notice="Onaylandı: {when}",
    cancelled_notice="İptal edildi: {when}",
    expired_notice="Bu isteğin süresi doldu. Oturum açmak için lütfen yeniden başlayın.",
    foreign="Bu istek başka birine ait. Kendiniz oturum açmak için lütfen web sitesinde veya uygulamada yeniden başlayın.",
    unknown="Bu istek bilinmiyor veya artık geçerli değil. Oturum açmak için lütfen web sitesinde veya uygulamada yeniden başlayın.",
    help="Web sitelerinde ve uygulamalarda parola olmadan oturum açmanızı sağlarım.\n\n"
    "Orada mesajlaşma hesabınızla oturum açmayı seçin, ardından gösterilen bağlantıyı açın veya kodu tarayın. "
    "Sonra burada onayınızı isteyeceğim.",
    private_only="Lütfen benimle özel bir sohbet açın: oturum açma isteklerini yalnızca orada yanıtlıyorum.",
)

_UZBEK: Final = Texts(
    confirm_button="Tasdiqlash",
    cancel_button="Bekor qilish",
    prompt="{project} tizimiga kirasizmi?\n\nSo‘rov vaqti: {age}.\n\nAgar buni siz boshlamagan bo‘lsangiz, “{cancel}” tugmasini bosing.",
    just_now="hozirgina",
    seconds_ago="{n} soniya oldin",
    minutes_ago="{n} daqiqa oldin",
    confirmed="Siz {project} tizimiga kirishni tasdiqladingiz.\n{when}\n\nBoshlagan joyingizga qaytishingiz mumkin.",
    cancelled="Siz {project} tizimiga kirishni bekor qildingiz.\n{when}\n\nKirish amalga oshirilmadi.",
    expired="{project} tizimiga kirish so‘rovining muddati tugadi. Kirish amalga oshirilmadi.\n\nKirish uchun qaytadan boshlang.",
    confirmed_notice="Tasdiqlandi: {when}",
    cancelled_notice="Bekor qilindi: {when}",
    expired_notice="Bu so‘rovning muddati tugadi. Kirish uchun qaytadan boshlang.",
    foreign="Bu so‘rov boshqa foydalanuvchiga tegishli. O‘zingiz kirish uchun sayt yoki ilovada qaytadan boshlang.",
    unknown="Bu so‘rov noma’lum yoki endi amal qilmaydi. Kirish uchun sayt yoki ilovada qaytadan boshlang.",
    help="Men sizga sayt va ilovalarga parolsiz kirishga yordam beraman.\n\n"
    "U yerda messenjer orqali kirishni tanlang va ko‘rsatilgan havolani oching yoki kodni skanerlang. "
    "Shundan so‘ng men shu yerda tasdiqlashingizni so‘rayman.",
    private_only="Iltimos, men bilan shaxsiy suhbat oching: kirish so‘rovlariga faqat o‘sha yerda javob beraman.",
)

LANGUAGES: Final[dict[str, Texts]] = {
    "en": _ENGLISH,
    "ru": _RUSSIAN,
    "uk": _UKRAINIAN,
    "es": _SPANISH,
    "pt": _PORTUGUESE,
    "fa": _PERSIAN,
    "ar": _ARABIC,
    "id": _INDONESIAN,
    "tr": _TURKISH,
    "uz": _UZBEK,
}
"""By the first part of an IETF language tag."""


def texts_for(language_code: str | None) -> Texts:
    """Return the texts for a user's `language_code`, such as `pt-br`; English when it is missing or not known."""
    return LANGUAGES.get((language_code or "").partition("-")[0].lower(), _ENGLISH)
